select id as won, :tasks is null or task in (select value from json_each(:tasks)) as known
    from job
    where id in ({open_ready} limit :wanted)
      and (target is null or stage = 'R' or (not {lane_held} and id = {next_in_lane}))
