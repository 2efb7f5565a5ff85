-- Ready, in this queue, and after the claimer's cursor.
(queue, (-priority), id) > (:queue::text, :rank::integer, :after::bigint)
      and queue <= :queue::text and {is_ready}
