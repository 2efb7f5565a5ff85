-- Seconds since workers were last notified of this queue.
(select extract(epoch from created_at - n.at)::double precision
            from {schema}.last_notified n where n.topic = '+' || :queue::text)
