-- A page, newest first. Groups are shown with their workflow. With a rare filter it is short: it looks at a window.
select {flow_columns} from (
    select * from {schema}.flow where id < :before::bigint order by id desc limit :window::integer
) f
where f.kind <> 'group'
  and (:kind::text is null or f.kind = :kind::text) and (:state::text is null or f.state = :state::text)
order by f.id desc limit :limit::integer
