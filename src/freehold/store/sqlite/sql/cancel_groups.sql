-- The groups of a canceled workflow are canceled with it; again if they were canceled before, and a member of them was
-- retried since.
update flow_node set waits = 0
where flow = :flow and waits
  and number in (select node from flow where parent = :flow and parent is not null and closed_at is null);

update flow
set canceled_at = clock(), canceled_by = :by, cancel_reason = :reason, reached = 0, due = 1, change = change + 1
where parent = :flow and parent is not null and closed_at is null
returning id
