-- A page of schedules, by name.
select {schedule_columns} from {schema}.schedule
where name > :after::text order by name limit :limit::integer
