-- A range instead of an equation, which the planner takes for a few rows: it would then collect
-- and sort the whole queue instead of walking the index in order up to the limit.
(queue, (-priority)) >= (:queue::text, -32768) and queue <= :queue::text and {is_ready}
