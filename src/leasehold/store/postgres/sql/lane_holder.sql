select {job_columns} from {schema}.job j
where j.target = :target::text and j.stage in ('R','u','h','b','p','x')
