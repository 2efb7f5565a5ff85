-- How many seconds ago those who wait for this queue were told of something.
(select extract(epoch from created_at - t.at)::double precision
            from {schema}.told t where t.hint = '+' || :queue::text)
