case when not :obeys then :reason
    -- Interrupted: author and reason.
    when :state = 'paused' and stop_request = 'cancel'
    then :reason || coalesce(' by ' || stop_requested_by, '') || coalesce(': ' || stop_request_reason, '')
    else coalesce(stop_request_reason, :reason) end
