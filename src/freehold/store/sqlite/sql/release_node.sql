-- A node waits no longer: it is canceled, or its group is released. Then no member may be left that waits.
update flow_node set waits = 0
where flow = :flow and number = :number and waits
  and (:part is null
       or not exists (select 1 from job
                      where waits_for = 'flow/' || :part and waits_for is not null and stage = {pending}))
returning number
