-- Signals: named values for handlers that wait for them. The first value of a name is kept until it expires.
-- A sweep delivers a signal to the jobs that wait for it, after the transaction that sent it has committed, so
-- sending one only adds a row.
create table {schema}.signal (
    name       text primary key,
    value      json not null,
    at         timestamptz not null,
    by         text,
    expires_at timestamptz not null,
    delivered  boolean not null default false
) with (vacuum_truncate = off);
-- With some free space, as `job`: a plan made for an empty file reads all of it. The rows are delivered and never
-- expire, because a probe of the indexes below would read them until the first vacuum.
insert into {schema}.signal (name, value, at, expires_at, delivered)
    select '.' || i, to_json(repeat('.', 1900)), now(), 'infinity', true from generate_series(1, 500) i;
delete from {schema}.signal;
create index signal_undelivered on {schema}.signal (name) where not delivered;
create index signal_expiry on {schema}.signal (expires_at);

-- For other languages. False: the signal was sent before, and keeps its first value.
create function {schema}.send_signal(name text, value json default 'null', keep interval default '30 days')
    returns boolean
    language plpgsql
    set search_path = pg_catalog, pg_temp
    as $$
#variable_conflict use_column
declare
    at timestamptz := {schema}.clock();
begin
    perform {schema}.check_key('signal', send_signal.name);
    if send_signal.value is null or octet_length(send_signal.value::text) > 1048576 then
        raise invalid_parameter_value using message = 'the value of a signal must be JSON of at most 1048576 bytes';
    elsif send_signal.keep is null or send_signal.keep <= interval '0' then
        raise invalid_parameter_value using message = 'keep must be an interval above 0';
    end if;
    insert into {schema}.signal as s (name, value, at, expires_at)
    values (send_signal.name, send_signal.value, at, at + send_signal.keep)
    on conflict (name) do update set value = excluded.value, at = excluded.at, by = null,
        expires_at = excluded.expires_at, delivered = false
    where s.expires_at <= excluded.at;
    if found then
        perform pg_notify('freehold_{schema}', '@');
    end if;
    return found;
end
$$;

-- A signal that is not delivered is work, even where no queue may start a job.
alter function {schema}.has_work() rename to all_but_signals_have_work;
create function {schema}.has_work() returns boolean
    language plpgsql volatile
    as $$
begin
    return (select s.name from {schema}.signal s where not s.delivered order by s.name limit 1) is not null or {schema}.all_but_signals_have_work();
end
$$;

-- Without the stages, which are those of `job_due`: a statement that names them would read all delayed jobs.
drop index {schema}.job_suspended;
create index job_suspended on {schema}.job (waits_for) where waits_for is not null;
