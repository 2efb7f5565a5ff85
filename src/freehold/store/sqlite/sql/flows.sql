-- A page, newest first. Groups are shown with their workflow.
select {flow_columns} from flow f
where f.id < :before and f.kind <> 'group' and (:kind is null or f.kind = :kind) and (:state is null or f.state = :state)
order by f.id desc limit :limit
