-- The guard of a step, before all its changes: it is refused if the chunk was carried out, or if the
-- operation was stopped, or is gone: then the number is null. The lock keeps it so until the commit.
insert into {schema}.bulk_step (operation, number, at)
select :operation::bigint,
    case (select o.state from {schema}.bulk_operation o where o.id = :operation::bigint for update)
        when 'running' then :number::integer when 'stopped' then 0 when 'done' then 0 end,
    {schema}.clock()
