case when json_valid(policy) and json_type(policy, '$.node') = 'integer' then json_extract(policy, '$.node') end
