-- Sources of a node that have not succeeded: open ones, and those for which it is held or canceled.
select s.name, s.job_id, s.part, s.state
from (select distinct e.source from flow_edge e where e.flow = :flow and e.target = :number) d
join flow_node s on s.flow = :flow and s.number = d.source
where s.state is not 'succeeded'
order by s.number limit :limit
