-- What must never stand in the table, said in one function instead of five constraints: the server
-- reads a constraint's expression anew for every statement, which took half the time of inserting one
-- job. It keeps a function's.
create function {schema}.is_sound(
    stage "char", target text, attempt smallint, max_attempts smallint, lost smallint,
    lease_owner text, lease_token bigint, lease_expires_at timestamptz, leased_at timestamptz,
    heartbeat_at timestamptz, started_at timestamptz, request "char") returns boolean
    language plpgsql immutable parallel safe
    as $$
declare
    wrong   text;
begin
    -- As nearly all of them stand here, nearly always: answered by one expression.
    if attempt >= 0 and max_attempts >= 1 and lost >= 0 and (
        stage = 'r' and num_nonnulls(lease_owner, lease_token, lease_expires_at, leased_at,
                                     heartbeat_at, started_at, request) = 0
        or stage = 'h' and request is null
            and num_nulls(lease_owner, lease_token, lease_expires_at, leased_at) = 0)
    then
        return true;
    end if;
    wrong := case
        when stage not in ('n','w','r','R','f','u','h','b','p','q','x','l','t') then 'job_stage'
        -- A leased row has owner, token and expiry; no other row has any of them.
        when num_nulls(lease_owner, lease_token, lease_expires_at, leased_at)
                <> case when stage = 'h' then 0 else 4 end
            or stage <> 'h' and num_nonnulls(heartbeat_at, started_at) > 0 then 'job_lease'
        when request is not null and (stage <> 'h' or request not in ('c', 'p')) then 'job_request'
        when target is null and stage in ('R','f','b','q','x','t') then 'job_lane'
        when attempt < 0 or max_attempts < 1 or lost < 0 then 'job_attempts'
    end;
    if wrong is not null then
        raise check_violation using
            message = format('a job violates the constraint %I', wrong),
            constraint = wrong, table = 'job', schema = '{schema}';
    end if;
    return true;
end
$$;

-- Not valid: what stands there was checked by the five. Nobody need wait for another look at it.
alter table {schema}.job
    drop constraint job_stage, drop constraint job_lease, drop constraint job_request,
    drop constraint job_lane, drop constraint job_attempts,
    add constraint job_sound check ({schema}.is_sound(
        stage, target, attempt, max_attempts, lost, lease_owner, lease_token, lease_expires_at,
        leased_at, heartbeat_at, started_at, request)) not valid;

-- When somebody told those who listen that a queue has something for them: those who enqueue see it, and
-- need not tell them again a moment later. Lost with a crash, which costs one hint.
create unlogged table {schema}.told (
    hint  text primary key,
    at    timestamptz not null
) with (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = off);
