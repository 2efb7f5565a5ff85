select first, last from flow_range where flow = :flow order by first
