-- SQLite cannot take the write lock from a process that is frozen while it writes.
select 1 where false
