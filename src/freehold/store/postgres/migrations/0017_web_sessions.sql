-- Sessions of the dashboard. Only digests are stored: of the cookie, and of the token that signed in.
create table {schema}.web_session (
    digest       text primary key,
    token_digest text not null,
    author       text,                  -- as its user wrote it; not verified
    created_at   timestamptz not null,
    seen_at      timestamptz not null,
    expires_at   timestamptz not null
);
create index web_session_end on {schema}.web_session (expires_at);
