insert into idempotency (key, job_id, expires_at)
values (:key, :job_id, clock() + cast(round(:seconds * 1000000) as integer))
on conflict (key) do nothing
