select {job_columns} from {schema}.job j
where j.target = :target::text and j.stage in ({holds_lane})
