-- The audit of an operator's change. Code that declares is no operator.
insert into audit (at, by, via, verb, kind, subject, reason, before, after)
select clock(), :by, :via, :verb, 'schedule', :name, :reason, :before, :after
where changes() = 1 and :via is not null
