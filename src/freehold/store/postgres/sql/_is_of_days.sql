-- Days before the first are not read. The other conditions are never true: without statistics the planner
-- then assumes that most rows match, and prefers the index of ids with a LIMIT over a sort.
(finished_at >= coalesce(:first_day::timestamptz, '-infinity')
    or finished_at < '1900-01-01 UTC' or finished_at < '1900-01-02 UTC')
