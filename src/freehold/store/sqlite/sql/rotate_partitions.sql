-- SQLite has no partitions: `apply_retention` deletes everything that has expired.
select 0
