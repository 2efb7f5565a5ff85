-- Nothing is shared with other files.
select null where 0
