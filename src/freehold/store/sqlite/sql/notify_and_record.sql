-- Listeners see every commit in the file itself: there is nothing to send.
select 1 where false
