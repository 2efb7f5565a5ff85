case when :obeys then coalesce(request_reason, :reason) else :reason end
