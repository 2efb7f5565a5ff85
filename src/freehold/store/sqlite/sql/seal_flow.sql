-- No producer adds members any more. The row of the worklist lets the fold see whether all have ended.
update flow set sealed_at = clock(), change = change + 1 where id = :flow and sealed_at is null returning id;

insert into flow_end (flow) select :flow where changes() > 0
