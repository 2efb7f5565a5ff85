select m.low, m.low_at, m.examined, p.id, p.at, p.by, p.via, p.verb, p.kind, p.subject, p.reason, p.before,
    p.after
from (select min(id) as low, at as low_at, count(*) as examined from examined) m
left join (
    select * from examined l
    where (:by is null or l.by = :by)
      and (:verb is null or l.verb = :verb)
      and (:kind is null or l.kind = :kind)
    order by l.id desc limit :limit) p
