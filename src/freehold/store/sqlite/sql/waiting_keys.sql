select distinct limit_key from job where stage = 'l' and limit_key > :after
order by limit_key limit :limit
