-- Retention looks for steps of deleted jobs once for each day that the history loses, in windows of bounded size:
-- days before `scanned_to` are done; of the next search the steps up to (at, job_id) in this order.
create table {schema}.step_scan (
    only_row   boolean primary key default true check (only_row),
    scanned_to timestamptz not null,
    at         timestamptz not null,
    job_id     bigint not null
);
create index step_age on {schema}.step (at, job_id);
drop index {schema}.step_at;

-- Runs as its owner: a producer sends signals and cannot read or change any.
drop function {schema}.send_signal(text, json, interval);
create function {schema}.send_signal(name text, value json default 'null', keep interval default '30 days',
        by text default null) returns boolean
    language plpgsql security definer
    set search_path = pg_catalog, pg_temp
    as $$
#variable_conflict use_column
declare
    at timestamptz := {schema}.clock();
begin
    if send_signal.name is null then
        raise invalid_parameter_value using message = 'a signal needs a name';
    end if;
    perform {schema}.check_key('signal', send_signal.name);
    if send_signal.by is not null then
        perform {schema}.check_key('by', send_signal.by);
    end if;
    if send_signal.value is null or octet_length(send_signal.value::text) > 1048576 then
        raise invalid_parameter_value using message = 'the value of a signal must be JSON of at most 1048576 bytes';
    elsif send_signal.keep is null or send_signal.keep <= interval '0' or send_signal.keep > interval '10 years' then
        raise invalid_parameter_value using message = 'keep must be an interval above 0, of at most ten years';
    end if;
    insert into {schema}.signal as s (name, value, at, by, expires_at)
    values (send_signal.name, send_signal.value, at, send_signal.by, at + send_signal.keep)
    on conflict (name) do update set value = excluded.value, at = excluded.at, by = excluded.by,
        expires_at = excluded.expires_at, delivered = false
    where s.expires_at <= excluded.at;
    if found then
        perform pg_notify('freehold_{schema}', '@');
    end if;
    return found;
end
$$;
revoke execute on function {schema}.send_signal(text, json, interval, text) from public;
