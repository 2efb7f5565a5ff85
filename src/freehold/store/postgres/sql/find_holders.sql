-- The jobs that hold the keys: the remembered one first, then the live one. And when a live one was created.
with standbys as materialized ({standbys})
select position, holder, (select j.created_at from {schema}.job j where j.id = holder) from (
    select g.position, coalesce(
        (select i.job_id from {schema}.idempotency i
         where i.key = g.idempotency_key
           and (i.expires_at > (select {schema}.clock())
                or exists (select from {schema}.job j where j.id = i.job_id))),
        (select j.id from {schema}.job j
         where j.unique_key = g.unique_key and j.stage <> {failed})) as holder
    from json_to_recordset(:rows::json)
        as g(position integer, unique_key text, idempotency_key text)) found
cross join standbys
where holder is not null
