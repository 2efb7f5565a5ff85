-- Members up to this id are canceled, or were asked to stop.
update flow set reached = :reached where id = :flow and reached < :reached
returning id
