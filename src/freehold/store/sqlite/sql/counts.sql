select
    (select count(*) from (select 1 from job where stage in ({ready}, {lane_head}) limit :bound)),
    (select count(*) from (select 1 from job where stage in ({scheduled}, {backoff}) limit :bound)),
    (select count(*) from (select 1 from job
        where target is not null and stage in ({ready}, {follower}, {paused_follower}) and stage = {follower} limit :bound)),
    (select count(*) from (select 1 from job where stage = {leased} limit :bound)),
    (select count(*) from (select 1 from job
        where stage in ({pending}, {paused}, {paused_follower}, {failed}, {parked}) and stage in ({paused}, {paused_follower}) limit :bound)),
    (select count(*) from (select 1 from job
        where stage in ({pending}, {paused}, {paused_follower}, {failed}, {parked}) and stage = {failed} limit :bound)),
    (select count(*) from (select 1 from job
        where stage in ({pending}, {paused}, {paused_follower}, {failed}, {parked}) and stage = {pending} limit :bound)),
    (select count(*) from (select 1 from job where stage = {parked} limit :bound)),
    (select count(*) from (select 1 from job where stage = {limited} limit :bound)),
    (select count(*) from (select 1 from job where stage = {lane_paused} limit :bound))
