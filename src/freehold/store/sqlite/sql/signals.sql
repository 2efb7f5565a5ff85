-- A page of the signals that are kept, by name.
select name, at, by, expires_at, delivered from signal
where name > :after and expires_at > clock()
order by name limit :limit
