{plain_job} returning id, null
