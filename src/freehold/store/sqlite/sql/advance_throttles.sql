-- A job that was just stored is due at or after the end of the window, and opens the next one. One that waited
-- already did so before.
insert into throttle (key, next_at)
select :key, run_at + cast(round(:seconds * 1000000) as integer) from job
where waiting_key = :key and stage <> {leased}
  and run_at >= coalesce((select next_at from throttle where key = :key), 0)
on conflict (key) do update set next_at = excluded.next_at
