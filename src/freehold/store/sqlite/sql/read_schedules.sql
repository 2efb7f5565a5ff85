-- The schedules of these names, and all that this app has declared.
select {schedule_columns} from schedule
where name in (select value from json_each(:names)) or declared_by = :app order by name
