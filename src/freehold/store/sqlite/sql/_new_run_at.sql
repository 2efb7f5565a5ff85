case when :keep_run_at then run_at
    when substr(:waits_for, 1, 7) = 'signal/' and exists (select 1 from signal s
        where s.name = substr(:waits_for, 8) and s.expires_at > clock()) then null
    when substr(:waits_for, 1, 7) = 'gather/' and exists (select 1 from flow f
        where f.id = cast(substr(:waits_for, 8) as integer) and f.closed_at is not null) then null
    when :delay_seconds > 0 then clock() + cast(round(:delay_seconds * 1000000) as integer) end
