-- What can be claimed now, up to a bound: of a paused queue, nothing.
select count(*) from ({open_ready} limit :bound)
