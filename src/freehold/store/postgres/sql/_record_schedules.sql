-- The audit of an operator's change, in the statement that makes it. Code that declares is no operator.
insert into {schema}.audit (at, by, via, verb, kind, subject, reason, before, after)
    select {schema}.clock(), g.by, g.via, g.verb, 'schedule', g.name, g.reason, g.before::json, g.after::json
    from changed join given g using (name)
    where g.via is not null
