delete from lane where target = :target
returning target
