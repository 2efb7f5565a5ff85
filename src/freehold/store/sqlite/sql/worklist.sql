select distinct flow from flow_end order by flow limit :limit
