-- properties: not_notified
delete from worker where owner = :owner
