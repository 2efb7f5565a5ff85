-- The schedules of these names, and all that this app has declared.
select {schedule_columns} from {schema}.schedule
where name = any (:names::text[]) or declared_by = :app::text order by name
