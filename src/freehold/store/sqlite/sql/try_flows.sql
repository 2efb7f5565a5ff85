-- Writers take turns: every flow is free.
select group_concat(json_extract(value, '$.flow')) from json_each(:rows)
