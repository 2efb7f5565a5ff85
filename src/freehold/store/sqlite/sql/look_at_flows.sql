select :flow, exists (select 1 from flow_end where flow = :flow), exists (select 1 from flow where id = :flow and due)
