-- properties: takes_long
-- Deletes operations that ended before the audit's retention, with their sets and steps. One that was stopped
-- is as old as its last step.
with old as (
    delete from {schema}.bulk_operation where id = any (array(
        select o.id from {schema}.bulk_operation o
        where o.state <> 'running'
          and coalesce(o.ended_at, (select max(s.at) from {schema}.bulk_step s where s.operation = o.id), o.asked_at)
            < (select {schema}.clock() - make_interval(secs => :audit_days::double precision * 86400))
        order by o.id limit 100
        for update))
    returning id
),
sets as (delete from {schema}.bulk_chunk where operation = any (array(select id from old))),
steps as (delete from {schema}.bulk_step where operation = any (array(select id from old)))
select id from old
