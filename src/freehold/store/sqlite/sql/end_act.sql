-- Nothing is left to act upon, unless the flow has changed since it was read.
update flow set due = 0 where id = :flow and change = :change and due
returning id
