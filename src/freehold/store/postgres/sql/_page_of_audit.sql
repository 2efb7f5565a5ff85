, page as materialized (
    select * from examined l
    where (:by::text is null or l.by = :by::text)
      and (:verb::text is null or l.verb = :verb::text)
      and (:kind::text is null or l.kind = :kind::text)
    limit :limit::integer
)
select m.low, m.low_at, m.examined, p.id, p.at, p.by, p.via, p.verb, p.kind, p.subject, p.reason,
    p.before::text as before, p.after::text as after
from (select case when short then (select min(id) from examined) end as low,
             case when short then (select at from examined order by id limit 1) end as low_at,
             case when short then (select count(*) from examined) end as examined
      from (select (select count(*) from page) < :limit::integer as short) s) m
left join page p on true
order by p.id desc
