-- Schedules that a sweep must look at, and the time.
select clock(), {schedule_columns} from schedule
where next_at is not null and next_at <= clock() order by next_at limit :limit
