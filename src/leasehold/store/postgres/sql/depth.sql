-- What can be claimed now, up to a bound.
select {schema}.count_ready(:queue::text, :bound::integer)
