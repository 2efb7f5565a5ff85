-- Marks jobs that have steps, once.
update {schema}.job j
    set policy = (case when j.policy is null or (select count(*) from json_object_keys(j.policy)) = 0 then chr(123)
        else regexp_replace(j.policy::text, '\s*\S\s*$', ',') end || '"steps":' || 'true' || chr(125))::json
    where j.id = any (array(select id from held)) and (j.policy -> 'steps') is null
