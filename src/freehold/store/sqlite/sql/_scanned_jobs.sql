select id, queue, task from history
where finished_at >= :day and finished_at < :next_day and id > :after order by id limit :window
