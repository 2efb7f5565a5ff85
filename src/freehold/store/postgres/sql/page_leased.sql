-- Leased jobs: no more than the fleet has slots.
with leased as materialized (
    -- All of them: walking all jobs by id until enough are leased would read the whole table.
    select * from {schema}.job where stage = {leased}
),
examined as materialized (
    select *, null::text as error_type from leased where id < :before::bigint order by id desc limit :window::integer
)
{page_of_jobs}
