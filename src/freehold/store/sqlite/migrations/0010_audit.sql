-- Every change by an operator: author, interface, reason, and the values before and after it.
create table audit (
    id      integer primary key autoincrement,
    at      integer not null,
    by      text not null,
    via     text not null,              -- python, cli, http, settings
    verb    text not null,
    kind    text not null,              -- of what was changed: job, queue, lane, limit, tenant, bulk
    subject text not null,              -- its id or name
    reason  text,
    before  text,
    after   text
);
create index audit_subject on audit (kind, subject, id);
create index audit_at on audit (at);
