-- properties: not_notified
-- A step that exists already stays as it is: its write is repeated because the result of the first one was
-- lost. The first step of a job marks its policy, which every claim reads, so that an attempt without
-- earlier steps need not look for any. Returns the lease if it holds, with whether the step was added.
{mark_steps};

insert or ignore into step (job_id, name, number, token, at, kind, until, value, hidden)
select id, :name, :number, lease_token, clock(), :kind, clock() + cast(round(:seconds * 1000000) as integer),
    :value, :hidden
from job where {lease_holds};

select id, lease_token, changes() > 0 from job where {lease_holds}
