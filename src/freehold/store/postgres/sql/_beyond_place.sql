-- Ready, in this queue, and beyond the place where the claimer's last claim ended.
(queue, (-priority), id) > (:queue::text, :rank::integer, :after::bigint)
      and queue <= :queue::text and {is_ready}
