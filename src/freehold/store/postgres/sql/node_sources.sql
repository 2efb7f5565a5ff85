-- Sources of a node that have not succeeded: open ones, and those for which it is held or canceled.
select s.name, s.job_id, s.part, s.state
from (select distinct e.source from {schema}.flow_edge e
      where e.flow = :flow::bigint and e.target = :number::integer) d
join {schema}.flow_node s on s.flow = :flow::bigint and s.number = d.source
where s.state is distinct from 'succeeded'
order by s.number limit :limit::integer
