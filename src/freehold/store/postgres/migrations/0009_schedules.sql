-- Schedules. `next_at` is when a sweep must look at one: at its next tick, at most a day ahead; null: paused
-- or ended. Ticks up to `counted_to` have made their job, were skipped or missed. `edit` counts the changes by
-- operators and by code: a sweep writes only if it and `next_at` are as the sweep read them.
create table {schema}.schedule (
    name          text primary key,
    definition    json not null,               -- time, policies and job: store/schedule_text.py
    created_at    timestamptz not null,
    anchor_at     timestamptz not null,        -- intervals count from here
    counted_to    timestamptz not null,
    next_at       timestamptz,
    edit          integer not null default 0,
    last_at       timestamptz,                 -- the last tick that made a job
    last_job      bigint,
    fired         bigint not null default 0,
    missed        bigint not null default 0,
    skipped       bigint not null default 0,
    skipped_at    timestamptz,
    skipped_for   bigint,                      -- the live job for which the last skipped tick made none
    problem       text,                        -- why the last sweep could not fire it
    declared      json,                        -- the definition that its app declared last
    declared_by   text,                        -- the app; null: an operator put it here
    undeclared_at timestamptz,                 -- since when its app no longer declares it
    edited_at     timestamptz,
    edited_by     text,
    paused_at     timestamptz,
    paused_by     text,
    pause_reason  text,
    paused_until  timestamptz
);
create index schedule_due on {schema}.schedule (next_at) where next_at is not null;
create index schedule_undeclared on {schema}.schedule (undeclared_at) where undeclared_at is not null;

-- A due schedule is work, even where no queue may start a job.
alter function {schema}.has_work() rename to jobs_have_work;
create function {schema}.has_work() returns boolean
    language plpgsql volatile
    as $$
begin
    return exists (select from {schema}.schedule where next_at <= {schema}.clock())
        or {schema}.jobs_have_work();
end
$$;
