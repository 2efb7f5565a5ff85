update tenant set weight = :weight, max_slots = :max_slots
where name = :tenant
returning name
