delete from tenant where name = :tenant returning name
