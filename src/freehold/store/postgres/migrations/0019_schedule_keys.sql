-- Keys that begin with "schedule:" are those of schedules, for every writer of new jobs: model/options.py has
-- the same rule. A job with such a key would keep a schedule from firing.
create or replace function {schema}.check_key(what text, key text) returns void
    language plpgsql immutable parallel safe
    as $$
begin
    if length(key) > 200 then
        raise invalid_parameter_value using message = format('%s: targets and keys have at most 200 characters', what);
    elsif key = '' then
        raise invalid_parameter_value using message = format('%s: targets and keys cannot be empty: leave them out', what);
    elsif not {schema}.is_printable(key) then
        raise invalid_parameter_value using message = format('%s: targets and keys have printable characters only', what);
    elsif what in ('target', 'unique_key') and starts_with(key, 'schedule:') then
        raise invalid_parameter_value using message = format('%s: keys that begin with schedule: are those of schedules', what);
    end if;
end
$$;
