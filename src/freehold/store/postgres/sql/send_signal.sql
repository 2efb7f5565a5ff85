-- The first value of a name is kept, until it expires. Only adds a row: a caller's transaction blocks no worker. The
-- function runs as its owner, for producers.
select 1 where {schema}.send_signal(:name::text, :value::json,
    make_interval(secs => :keep_seconds::double precision), :by::text)
