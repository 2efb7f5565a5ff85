select l.*, row_number() over (partition by l.limit_key order by l.place) as key_place
    from looked l where l.goes and not l.stopped
