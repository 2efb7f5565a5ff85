-- Jobs that are unique until a worker takes them. A key that a waiting job holds keeps the new job out;
-- `find_waiting` reads the holder afterwards.
{new_waiting_job}
