least(coalesce(excluded.run_at, excluded.created_at),
                j.created_at + make_interval(secs => :at_most_seconds::double precision))
