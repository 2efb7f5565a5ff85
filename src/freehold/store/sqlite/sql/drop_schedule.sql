delete from schedule where name = :schedule returning name
