update job set stage = 'R' where target = :target and stage = 't'
