update tenant set moved_from = null
where name = :tenant and state <> 'moving'
returning name
