-- A process that is frozen while it writes keeps the pen: SQLite knows no remedy.
select 1 where false
