-- Candidates with a limited key, in the order of the claim within their key.
select id, row_number() over (partition by limit_key order by -priority, id) as key_position
    from candidate where may_run and not lane_is_paused and key_room is not null
