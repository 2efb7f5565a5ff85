-- Nobody else writes meanwhile.
select 1
