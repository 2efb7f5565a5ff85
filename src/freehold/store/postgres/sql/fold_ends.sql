-- Adds the worklist of the locked flows to their counters. All changes are relative to the newest version of a row.
-- A flow closes when it is sealed and all its members have ended; a difference that opens a member opens it again.
with mine as materialized (
    {locked_flows}
),
taken as (
    delete from {schema}.flow_end where ctid = any (array(
        select e.ctid from mine m cross join lateral (
            select e.ctid from {schema}.flow_end e where e.flow = m.flow limit :limit::integer) e))
    returning flow, node, succeeded, failed, canceled, cancels
),
summed as materialized (
    select flow, sum(succeeded) as succeeded, sum(failed) as failed, sum(canceled) as canceled,
        bool_or(cancels) as cancels
    from taken group by flow
),
counted as (
    update {schema}.flow f
    set succeeded = f.succeeded + s.succeeded, failed = f.failed + s.failed, canceled = f.canceled + s.canceled,
        change = f.change + 1,
        canceled_at = case when f.canceled_at is null and f.closed_at is null and s.cancels then t.now else f.canceled_at end,
        cancel_reason = case when f.canceled_at is null and f.closed_at is null and s.cancels
            then 'the job that waits for it has ended' else f.cancel_reason end,
        closed_at = case when {flow_closes} then coalesce(f.closed_at, t.now) end,
        held_key = case when {flow_closes} then null when f.closed_at is null then f.held_key else {free_key} end,
        state = {folded_state},
        -- Also from one end to another: a member that failed was retried and has succeeded since the last fold.
        due = f.due or s.cancels or {folded_state} <> f.state
    from summed s, (select {schema}.clock() as now) t
    where f.id = s.flow and f.id = any (array(select flow from summed))
    returning f.id
),
node_ends as materialized (
    select flow, node, sum(succeeded) as succeeded, sum(failed) as failed, sum(canceled) as canceled
    from taken where node is not null group by flow, node
),
ended as (
    update {schema}.flow_node n
    set state = case
            when (n.state is not distinct from 'succeeded')::integer + e.succeeded > 0 then 'succeeded'
            when (n.state is not distinct from 'failed')::integer + e.failed > 0 then 'failed'
            when (n.state is not distinct from 'canceled')::integer + e.canceled > 0 then 'canceled' end,
        waits = n.waits and not (e.succeeded > 0 or e.failed > 0 or e.canceled > 0),
        -- Kept for followers that start when the history is gone.
        result = case when (n.state is not distinct from 'succeeded')::integer + e.succeeded > 0
                and exists (select from {schema}.flow_edge d
                    where d.flow = n.flow and d.source = n.number and d.parameter <> '')
            then (select h.result from {schema}.history h where h.id = n.job_id limit 1) else n.result end
    from node_ends e
    -- Nodes after the flow: the order of all locks.
    where n.flow = e.flow and n.number = e.node
      and n.flow = any (array(select flow from node_ends)) and n.number = any (array(select node from node_ends))
      and (select count(*) from counted) >= 0
)
select flow, count(*) from taken group by flow
