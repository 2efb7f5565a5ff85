case when policy ->> 'node' ~ '^[0-9]{1,9}$' then (policy ->> 'node')::integer end
