{plain_job} returning id, created_at
