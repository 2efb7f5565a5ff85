-- Stops or resumes an operation, and records it.
insert into audit (at, by, via, verb, kind, subject, reason, before, after)
select clock(), :by, :via, :verb, 'bulk', cast(id as text), :reason, json_object('state', :seen_state),
    json_object('state', :state)
from bulk_operation where id = :operation and state = :seen_state;

update bulk_operation set state = :state where id = :operation and state = :seen_state
returning id
