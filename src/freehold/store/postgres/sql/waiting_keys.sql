-- Keys that have jobs waiting for their limit, key by key through the index.
with recursive waiting as (
    (select limit_key from {schema}.job where stage = {limited} and limit_key > :after::text
     order by limit_key limit 1)
    union all
    select (select j.limit_key from {schema}.job j
            where j.stage = {limited} and j.limit_key > w.limit_key order by j.limit_key limit 1)
    from waiting w where w.limit_key is not null
)
select limit_key from waiting where limit_key is not null limit :limit::integer
