-- Failed and canceled jobs, however many succeeded around them.
with examined as materialized (
    select *, case when :error::text is not null then error ->> 'type' end as error_type
    from {schema}.history where state <> 'succeeded' and id < :before::bigint
      and {is_of_days}
    order by id desc limit :window::integer
)
{page_of_history}
