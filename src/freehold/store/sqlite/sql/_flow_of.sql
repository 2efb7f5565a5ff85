case when json_valid(policy) and json_type(policy, '$.flow') = 'integer' then json_extract(policy, '$.flow') end
