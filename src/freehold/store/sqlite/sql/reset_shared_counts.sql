-- Every tenant is a file of its own: no limit is shared.
select 1
