insert into idempotency (key, job_id, expires_at)
values (:key, :job_id, clock() + cast(round(:seconds * 1000000) as integer))
on conflict (key) do update set job_id = excluded.job_id, expires_at = excluded.expires_at
    where idempotency.expires_at <= clock()
      and not exists (select 1 from job j where j.id = idempotency.job_id)
