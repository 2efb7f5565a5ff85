-- Makes jobs that wait for a limit_key ready, as many as the limit has room for besides those that are
-- ready already. The claim counts again, so that admitting too many is harmless.
update job set stage = case when target is null then {ready} else {lane_head} end
where id in (
    select w.id from job w where w.stage = {limited} and w.limit_key = :limit_key
    order by w.limit_key, -w.priority, w.id
    limit max(0, coalesce((select {key_room} from (select :limit_key as limit_key) k), 1000)
        - (select count(*) from job a where a.limit_key = :limit_key and a.stage in ({ready}, {lane_head}))))
returning id
