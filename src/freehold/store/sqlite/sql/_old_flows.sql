(select id from flow where closed_at < clock() - cast(round(:history_days * 86400000000) as integer) and kind <> 'group'
        and (kind <> 'gather' or not exists (select 1 from job where job.id = parent_job))
    order by closed_at limit :limit)
