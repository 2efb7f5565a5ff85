with examined as materialized (
    select *, case when :error is not null and json_valid(error) then json_extract(error, '$.type') end as error_type
    from history where id < :before order by id desc limit :window
)
{page_of_history}
