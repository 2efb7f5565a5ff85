select distinct limit_key from job where stage = {limited} and limit_key > :after
order by limit_key limit :limit
