case when :keep_run_at then run_at
    when :delay_seconds > 0 then clock() + cast(round(:delay_seconds * 1000000) as integer) end
