-- Deletes operations that ended before the audit's retention, with their sets and steps.
with old as (
    delete from {schema}.bulk_operation where id = any (array(
        select id from {schema}.bulk_operation
        where ended_at < (select {schema}.clock() - make_interval(secs => :audit_days::double precision * 86400))
        order by id limit 100))
    returning id
),
sets as (delete from {schema}.bulk_chunk where operation = any (array(select id from old))),
steps as (delete from {schema}.bulk_step where operation = any (array(select id from old)))
select id from old
