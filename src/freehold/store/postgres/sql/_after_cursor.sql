-- Ready, in this queue, after the claimer's cursor, and not too late. The last condition is one expression:
-- the planner would take "is null or ..." for a rare case, and choose another plan.
(queue, (-priority), id) > (:queue::text, :rank::integer, :after::bigint)
      and queue <= :queue::text and {is_ready}
      and coalesce(start_by > (select {schema}.clock()) or attempt > 0, true)
