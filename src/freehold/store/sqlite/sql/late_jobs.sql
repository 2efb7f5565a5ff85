-- Jobs that have not started by their time: the longest over first.
select id from job where {is_late} order by start_by, id limit :limit
