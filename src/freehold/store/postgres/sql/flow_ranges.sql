select first, last from {schema}.flow_range where flow = :flow::bigint order by first
