-- Jobs that are unique until a worker takes them. A key that a waiting job holds keeps the new job out;
-- `find_waiting` reads the holder afterwards.
{waiting_job} do nothing
    returning j.id, j.waiting_key, j.created_at
)
select position, stored.id, true, stored.created_at from given join stored using (waiting_key)
