-- What waits for a limit_key becomes ready as far as there is room. Those that are ready already
-- come first. The claim counts again: this only wakes.
update job set stage = case when target is null then 'r' else 'R' end
where id in (
    select w.id from job w where w.stage = 'l' and w.limit_key = :limit_key
    order by w.limit_key, -w.priority, w.id
    limit max(0, coalesce((select {key_room} from (select :limit_key as limit_key) k), 1000)
        - (select count(*) from job a where a.limit_key = :limit_key and a.stage in ('r','R'))))
returning id
