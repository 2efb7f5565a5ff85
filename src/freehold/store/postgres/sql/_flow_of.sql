case when policy ->> 'flow' ~ '^[1-9][0-9]*$' and length(policy ->> 'flow') < 19 then (policy ->> 'flow')::bigint end
