select {job_columns} from job j where j.id = :id
union all
select {history_columns} from history h where h.id = :id
