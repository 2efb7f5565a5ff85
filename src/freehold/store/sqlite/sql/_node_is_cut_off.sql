-- A map whose members wait for its sources, though it does not: a retry of the workflow has died between its transactions.
-- A cancel that is under way reaches the members soon.
n.part is not null and n.state is null and not n.waits
            and exists (select 1 from flow g where g.id = n.part and (g.canceled_at is null or g.reached = 9223372036854775807))
            and exists (select 1 from job j where j.waits_for = 'flow/' || n.part and j.waits_for is not null
                and j.stage = {pending})
