-- A page, newest first. Groups are shown with their workflow.
select {flow_columns} from {schema}.flow f
where f.id < :before::bigint and f.kind <> 'group'
  and (:kind::text is null or f.kind = :kind::text) and (:state::text is null or f.state = :state::text)
order by f.id desc limit :limit::integer
