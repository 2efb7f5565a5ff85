-- properties: takes_long
-- Flows that closed longer ago than the history is kept, with all that belongs to them. A group goes with its
-- workflow, a gather not before the job that waits for it.
with old as materialized (
    select f.id from {schema}.flow f
    where f.closed_at < (select {schema}.clock()) - make_interval(secs => :history_days::double precision * 86400)
      and f.kind <> 'group'
      -- A job that gathers finds its flow. No join, which would read all jobs.
      and (f.kind <> 'gather' or (select j.id from {schema}.job j where j.id = f.parent_job) is null)
    order by f.closed_at limit :limit::integer
    for update skip locked
),
gone as (
    delete from {schema}.flow f
    where f.id = any (array(
        select id from old union all
        select g.id from {schema}.flow g where g.parent = any (array(select id from old)) and g.parent is not null))
    returning f.id
),
ranges as (delete from {schema}.flow_range where flow = any (array(select id from gone))),
callbacks as (delete from {schema}.flow_callback where flow = any (array(select id from gone))),
nodes as (delete from {schema}.flow_node where flow = any (array(select id from gone))),
edges as (delete from {schema}.flow_edge where flow = any (array(select id from gone))),
ends as (delete from {schema}.flow_end where flow = any (array(select id from gone)))
select 1 from old
