-- A map whose members wait for its sources, though it does not: a retry of the workflow has died between its transactions.
-- A cancel that is under way reaches the members soon.
n.part is not null and n.state is null and not n.waits
            and exists (select from {schema}.flow g where g.id = n.part and (g.canceled_at is null or g.reached = 9223372036854775807))
            and exists (select from {schema}.job j where j.lease_owner is null and j.waits_for = 'flow/' || n.part::text
                and j.waits_for is not null and coalesce(j.stage = {pending}, false))
