-- Sessions of the dashboard. Only digests are stored: of the cookie, and of the token that signed in.
create table web_session (
    digest       text primary key,
    token_digest text not null,
    author       text,                  -- as its user wrote it; not verified
    created_at   integer not null,
    seen_at      integer not null,
    expires_at   integer not null
) without rowid;
create index web_session_end on web_session (expires_at);
