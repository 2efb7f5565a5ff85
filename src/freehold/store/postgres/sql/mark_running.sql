-- Shows leased jobs as running, for as long as they have run, where the lease still holds.
with given as (
    select * from json_to_recordset(:rows::json) as g(
        id bigint, token bigint, ran_seconds double precision)
),
held as materialized (
    {lease_holds} for no key update of j
),
started as (
    update {schema}.job j
    set started_at = greatest(j.leased_at, t.now - make_interval(secs => g.ran_seconds))
    from given g, (select {schema}.clock() as now) t
    where j.id = any (array(select id from held)) and j.id = g.id and j.started_at is null
)
select id from held
