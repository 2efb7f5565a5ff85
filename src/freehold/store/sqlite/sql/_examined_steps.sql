select at, job_id from step where (at, job_id) > (:at, :job_id) and at < :day order by at, job_id limit :window
