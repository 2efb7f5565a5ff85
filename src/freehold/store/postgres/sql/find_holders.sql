-- Who holds the keys that kept a job out: the remembered job first, then the live one.
select place, holder from (
    select g.place, coalesce(
        (select i.job_id from {schema}.idempotency i
         where i.key = g.idempotency_key
           and (i.expires_at > (select {schema}.clock())
                or exists (select from {schema}.job j where j.id = i.job_id))),
        (select j.id from {schema}.job j
         where j.unique_key = g.unique_key and j.stage <> 'x')) as holder
    from json_to_recordset(:rows::json)
        as g(place integer, unique_key text, idempotency_key text)) found
where holder is not null
