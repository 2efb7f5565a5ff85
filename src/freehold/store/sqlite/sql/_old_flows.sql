(select id from flow where closed_at < clock() - cast(round(:history_days * 86400000000) as integer) and kind <> 'group'
    order by closed_at limit :limit)
