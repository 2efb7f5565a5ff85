-- The step of a job that waits for a signal: it has the value if the signal was sent, and ends with its time
-- otherwise. A value that was stored stays. Without the lease nothing is stored or returned.
-- A lease that holds without a step: another call for it has stored the step after this one began, which is
-- then repeated.
with given as (
    select :id::bigint as id, :token::bigint as token
),
held as materialized (
    {lease_holds} for no key update of j
),
put as (
    insert into {schema}.step as w (job_id, name, number, token, at, kind, until, value, hidden)
    select h.id, :name::text, :number::integer, h.token, t.now,
        case when s.name is not null then 'signal' when :seconds::double precision <= 0 then 'timeout'
             else 'wait' end,
        t.now + make_interval(secs => :seconds::double precision), s.value,
        :hidden::boolean
    from held h cross join (select {schema}.clock() as now) t
    left join {schema}.signal s on s.name = :name::text and s.expires_at > t.now
    on conflict (job_id, name) do update set
        kind = case when excluded.kind <> 'signal' and w.until <= excluded.at then 'timeout'
                    when excluded.kind = 'timeout' then 'wait' else excluded.kind end,
        value = excluded.value, token = excluded.token, hidden = w.hidden or excluded.hidden
    where w.kind = 'wait'
    returning kind, value, until
),
marked as (
    {mark_steps}
)
select kind, value::text, extract(epoch from until - {schema}.clock())::double precision from put
union all
select s.kind, s.value::text, extract(epoch from s.until - {schema}.clock())::double precision
from held h left join {schema}.step s on s.job_id = h.id and s.name = :name::text and s.kind <> 'wait'
where (select count(*) from put) = 0
