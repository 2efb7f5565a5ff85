delete from schedule where name = :name returning name;

{record_schedules}
