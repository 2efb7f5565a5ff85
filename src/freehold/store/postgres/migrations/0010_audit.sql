-- Every change by an operator: author, interface, reason, and the values before and after it.
create sequence {schema}.audit_id;
create table {schema}.audit (
    id      bigint primary key default nextval('{schema}.audit_id'),
    at      timestamptz not null,
    by      text not null,
    via     text not null,              -- python, cli, http, settings
    verb    text not null,
    kind    text not null,              -- of what was changed: job, queue, lane, limit, tenant, bulk
    subject text not null,              -- its id or name
    reason  text,
    before  json,
    after   json
);
create index audit_subject on {schema}.audit (kind, subject, id);
create index audit_at on {schema}.audit (at);
