case when policy ->> 'flow' ~ '^[1-9][0-9]{0,17}$' then (policy ->> 'flow')::bigint end
