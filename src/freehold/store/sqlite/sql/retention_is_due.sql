-- Whether a row must be deleted.
select exists (select 1 from history where finished_at < t.cutoff)
    or exists (select 1 from event where at < t.cutoff)
    or exists (select 1 from job_log where at < t.cutoff)
    or exists (select 1 from retention_rule
        where coalesce(scanned_to, t.cutoff - t.cutoff % 86400000000) + 86400000000
            <= clock() - cast(days * 86400000000 as integer))
    or exists (select 1 from idempotency where expires_at <= clock())
    or exists (select 1 from schedule where undeclared_at < clock() - 7 * 86400000000)
    or exists (select 1 from throttle where next_at <= clock())
    or exists (select 1 from signal where expires_at <= clock())
    or exists (select 1 from flow where closed_at < t.cutoff)
    or exists (select 1 from step where at < t.cutoff - t.cutoff % 86400000000)
        and not exists (select 1 from step_scan where scanned_to >= t.cutoff - t.cutoff % 86400000000)
from (select clock() - cast(:history_days * 86400000000 as integer) as cutoff) t
