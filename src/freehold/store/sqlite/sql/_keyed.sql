-- Candidates with a limited key, in the order of the claim within their key.
select id, row_number() over (partition by limit_key order by -priority, id) as key_place
    from looked where goes and not stopped and key_room is not null
