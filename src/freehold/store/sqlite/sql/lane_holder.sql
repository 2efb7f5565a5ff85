select {job_columns} from job j
where j.target = :target and j.stage in ({holds_lane})
