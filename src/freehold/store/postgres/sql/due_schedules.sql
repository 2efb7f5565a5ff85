-- Schedules that a sweep must look at, without a lock, and the time.
select t.now, {schedule_columns} from (select {schema}.clock() as now) t
cross join lateral (
    select * from {schema}.schedule s where s.next_at <= t.now order by s.next_at limit :limit::integer) due
