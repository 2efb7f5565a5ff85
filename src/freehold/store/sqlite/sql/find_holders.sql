select :position, holder, (select created_at from job where id = holder) from (
    select coalesce(
        (select i.job_id from idempotency i where i.key = :idempotency_key
         and (i.expires_at > clock() or exists (select 1 from job j where j.id = i.job_id))),
        (select id from job where unique_key = :unique_key and stage <> {failed})) as holder)
where holder is not null
