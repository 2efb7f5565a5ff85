-- Records a change of a queue, lane, limit or tenant that the next statement of this transaction makes, with
-- its values of now. `only_if_paused`: a resume without a pause is no change.
with present as (
    select case :kind::text
        when 'queue' then (
            select json_build_object('paused_by', paused_by, 'pause_reason', pause_reason,
                'paused_until',
                    to_char(paused_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), 'weight', weight, 'max_leases', max_leases,
                'rate_starts', rate_starts, 'rate_seconds', rate_seconds)
            from {schema}.queue where name = :subject::text)
        when 'lane' then (
            select json_build_object('paused_by', paused_by, 'pause_reason', pause_reason,
                'paused_until',
                    to_char(paused_until at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))
            from {schema}.lane where target = :subject::text)
        when 'limit' then (
            select json_build_object('max_leases', max_leases, 'rate_starts', rate_starts,
                'rate_seconds', rate_seconds)
            from {schema}.key_limit where key = :subject::text)
        when 'retention' then (
            select json_build_object('days', days)
            from {schema}.retention_rule where kind || ' ' || name = :subject::text)
        when 'tenant' then (
            select json_build_object('shard', shard, 'state', state, 'weight', weight, 'max_slots', max_slots,
                'note', note)
            from {schema}.tenant where name = :subject::text)
        end as before
)
insert into {schema}.audit (at, by, via, verb, kind, subject, reason, before, after)
select {schema}.clock(), :by::text, :via::text, :verb::text, :kind::text, :subject::text, :reason::text,
    json_strip_nulls(before), :after::json
from present
where not :only_if_paused::boolean or before ->> 'paused_by' is not null
