-- SQLite keeps no days apart: everything old goes in `retain`.
select 0
