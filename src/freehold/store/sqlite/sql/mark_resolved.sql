-- A failed job is resolved: it stays finished, as canceled.
insert into event (job_id, at, attempt, kind, state, by, reason)
select id, clock(), attempt, 'canceled', 'canceled', :by, :reason
from history where id = :id and state = 'failed';

insert into flow_end (flow, node, failed, canceled)
select {flow_of}, {node_of}, -1, 1 from history where id = :id and state = 'failed' and {flow_of} is not null;

update history set state = 'canceled', reason = coalesce(:reason, reason)
where id = :id and state = 'failed'
returning id, 1
