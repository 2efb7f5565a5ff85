-- properties: not_notified
-- The step of a job that waits for a signal: it has the value if the signal was sent, and ends with its time
-- otherwise. A value that was stored stays. Without the lease nothing is stored or returned.
insert into step (job_id, name, number, token, at, kind, until, value, hidden)
select id, :name, :number, lease_token, clock(),
    case when exists (select 1 from signal s where s.name = :name and s.expires_at > clock()) then 'signal'
         when :seconds <= 0 then 'timeout' else 'wait' end,
    clock() + cast(round(:seconds * 1000000) as integer),
    (select s.value from signal s where s.name = :name and s.expires_at > clock()), :hidden
from job where {lease_holds}
on conflict (job_id, name) do update set
    kind = case when excluded.kind <> 'signal' and step.until <= excluded.at then 'timeout'
                when excluded.kind = 'timeout' then 'wait' else excluded.kind end,
    value = excluded.value, token = excluded.token, hidden = step.hidden or excluded.hidden
where step.kind = 'wait';

{mark_steps};

select kind, value, (until - clock()) / 1e6 from step
where job_id = :id and name = :name and exists (select 1 from job where {lease_holds})
