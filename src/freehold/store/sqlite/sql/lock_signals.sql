-- There is one writer at a time: no lock is needed.
select 1
