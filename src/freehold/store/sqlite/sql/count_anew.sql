-- Nothing is shared with other files.
select 1
