-- Jobs that can be claimed now, up to a bound; none of a paused queue.
select case when exists (
        select from {schema}.queue q
        where q.name in (:queue::text, '*') and q.paused_at is not null
          and coalesce(q.paused_until > {schema}.clock(), true))
    then 0 else {schema}.count_ready(:queue::text, :bound::integer) end
