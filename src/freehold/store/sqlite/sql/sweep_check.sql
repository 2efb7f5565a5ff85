-- What a sweep would find to do; and how many workers could do it.
select
    exists (select 1 from job where stage = {leased} and lease_expires_at <= clock()),
    exists (select 1 from job where stage = {limited}),
    exists (select 1 from lane where paused_until <= clock()),
    exists (select 1 from job where stage = {parked} and task in (select value from json_each(:tasks))
        and parked_until is null),
    exists (select 1 from job where stage = {parked} and task in (select value from json_each(:tasks))
        and parked_until is not null),
    ((select run_at from job where stage in ({scheduled}, {backoff}) order by run_at limit 1) - clock()) / 1e6,
    ((select next_at from schedule where next_at is not null order by next_at limit 1) - clock()) / 1e6,
    ((select start_by from job where start_by is not null and attempt = 0 order by start_by limit 1) - clock()) / 1e6,
    exists (select 1 from bulk_operation where state = 'running'),
    exists (select 1 from signal where not delivered),
    exists (select 1 from flow_end) or exists (select 1 from flow where due),
    (select count(*) from worker where expires_at > clock() and seen_at <= clock())
