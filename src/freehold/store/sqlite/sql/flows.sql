-- A page, newest first. Groups are shown with their workflow. With a rare filter it is short: it looks at a window.
select {flow_columns} from (select * from flow where id < :before order by id desc limit :window) f
where f.kind <> 'group' and (:kind is null or f.kind = :kind) and (:state is null or f.state = :state)
order by f.id desc limit :limit
