-- A file has no standby: what is visible is stored.
select null
