case when :obeys then coalesce(stop_request_reason, :reason) else :reason end
