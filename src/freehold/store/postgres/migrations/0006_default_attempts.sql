-- The default of `max_attempts` in SQL is that of `Retry` in Python. Only the default changes, and the rest
-- of the function stays as the migrations before have made it.
do $$
declare
    defined text;
begin
    select pg_get_functiondef(p.oid) into strict defined
    from pg_proc p where p.pronamespace = '{schema}'::regnamespace and p.proname = 'enqueue';
    if strpos(defined, 'max_attempts integer DEFAULT 5') = 0 then
        raise exception 'the function enqueue has another default of max_attempts than 5';
    end if;
    execute replace(defined, 'max_attempts integer DEFAULT 5', 'max_attempts integer DEFAULT 15');
end
$$;
