-- Records a change of a queue, lane, limit or tenant that the next statement of this transaction makes, with
-- its values of now. `only_if_paused`: a resume without a pause is no change.
insert into audit (at, by, via, verb, kind, subject, reason, before, after)
select clock(), :by, :via, :verb, :kind, :subject, :reason, before, :after
from (
    select case :kind
        when 'queue' then (
            select json_patch(json_object(), json_object('paused_by', paused_by, 'pause_reason', pause_reason,
                'paused_until', strftime('%Y-%m-%dT%H:%M:%SZ', paused_until / 1000000, 'unixepoch'),
                'weight', weight, 'max_leases', max_leases, 'rate_starts', rate_starts,
                'rate_seconds', rate_seconds))
            from queue where name = :subject)
        when 'lane' then (
            select json_patch(json_object(), json_object('paused_by', paused_by, 'pause_reason', pause_reason,
                'paused_until', strftime('%Y-%m-%dT%H:%M:%SZ', paused_until / 1000000, 'unixepoch')))
            from lane where target = :subject)
        when 'limit' then (
            select json_patch(json_object(), json_object('max_leases', max_leases, 'rate_starts', rate_starts,
                'rate_seconds', rate_seconds))
            from key_limit where key = :subject)
        when 'retention' then (
            select json_object('days', days) from retention_rule where kind || ' ' || name = :subject)
        when 'tenant' then (
            select json_patch(json_object(), json_object('shard', shard, 'state', state, 'weight', weight,
                'max_slots', max_slots, 'note', note))
            from tenant where name = :subject)
        end as before)
where not :only_if_paused or json_extract(before, '$.paused_by') is not null
