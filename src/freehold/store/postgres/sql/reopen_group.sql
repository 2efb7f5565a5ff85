-- A group that is retried is not canceled any more. One without members is open until its sources have ended; the row
-- of the worklist lets the fold see that.
with reopened as (
    update {schema}.flow
    set canceled_at = null, canceled_by = null, cancel_reason = null, reached = 0, change = change + 1,
        sealed_at = case when total > 0 or not :must_wait::boolean then sealed_at end
    where id = :flow::bigint and (total = 0 or :retried::boolean)
    returning id, total
),
counted as (
    insert into {schema}.flow_end (flow) select id from reopened where total = 0
)
select id from reopened
