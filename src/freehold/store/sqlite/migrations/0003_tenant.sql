-- The directory of tenants. Only that of the control file is used: tenants live in files of their
-- own beside it, or elsewhere.
create table tenant (
    name       text primary key,
    place      text not null,
    state      text not null check (state in ('active','paused','moving','degraded')),
    weight     real not null default 1 check (weight > 0),
    max_slots  integer check (max_slots >= 1),
    created_at integer not null,
    note       text,
    moving_to  text,
    moved_from text,
    constraint tenant_moving check ((state = 'moving') = (moving_to is not null))
) without rowid;
