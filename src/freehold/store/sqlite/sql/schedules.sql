-- A page of schedules, by name.
select {schedule_columns} from schedule
where name > :after order by name limit :limit
