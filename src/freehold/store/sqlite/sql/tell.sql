-- Every commit can be seen by whoever watches the file: nothing more to tell.
select 1 where false
