-- On PostgreSQL, numbers that move on with the timeline of a promoted server. A file has no timelines and no standby.
select 1;
