-- The groups of a canceled workflow are canceled with it; again if they were canceled before, and a member of them was
-- retried since.
with canceled as (
    update {schema}.flow
    set canceled_at = {schema}.clock(), canceled_by = :by::text, cancel_reason = :reason::text, reached = 0, due = true,
        change = change + 1
    where parent = :flow::bigint and parent is not null and closed_at is null
    returning id, node
),
unwaiting as (
    update {schema}.flow_node set waits = false
    where flow = :flow::bigint and number = any (array(select node from canceled)) and waits
)
select id from canceled
