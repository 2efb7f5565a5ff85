-- As text, so that the planner does not read the whole index of leases for rows found by id.
j.stage::text = {leased}
