delete from worker where owner = :owner
