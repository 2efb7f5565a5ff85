-- Lanes in which somebody waits, from where the last look ended; and whether nobody holds them and
-- their first cannot begin by itself.
select w.target,
       (select l.stage from job l where l.target = w.target and l.stage in ({in_lane})
        order by l.target, l.id limit 1) in ('f','q')
       and not exists (select 1 from job h
                       where h.target = w.target and h.stage in ({holds_lane}))
from (select distinct target from job
      where target is not null and stage in ({in_lane}) and target > :after
      order by target limit :limit) w
order by w.target
