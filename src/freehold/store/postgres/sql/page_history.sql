-- All finished jobs by id: most of them succeeded.
with examined as materialized (
    select *, case when :error::text is not null then error ->> 'type' end as error_type
    from {schema}.history where id < :before::bigint
      and {is_of_days}
    order by id desc limit :window::integer
)
{page_of_history}
