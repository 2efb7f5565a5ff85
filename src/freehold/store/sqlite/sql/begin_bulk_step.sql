-- The guard of a step, before all its changes: it is refused if the chunk was carried out, or if the
-- operation was stopped, or is gone: then the number is null.
insert into bulk_step (operation, number, at)
select :operation,
    case (select state from bulk_operation where id = :operation)
        when 'running' then :number when 'stopped' then 0 when 'done' then 0 end,
    clock()
