-- Jobs that can be claimed now, up to a bound; none of a paused queue.
select count(*) from ({open_ready} limit :bound)
