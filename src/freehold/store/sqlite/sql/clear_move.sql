update tenant set moved_from = null where name = :tenant returning name
