case when policy ->> 'node' ~ '^[0-9]+$' and length(policy ->> 'node') < 10 then (policy ->> 'node')::integer end
