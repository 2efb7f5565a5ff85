-- A page of the signals that are kept, by name.
select name, at, by, expires_at, delivered from {schema}.signal
where name > :after::text and expires_at > (select {schema}.clock())
order by name limit :limit::integer
