min(coalesce(:run_at, clock() + cast(round(coalesce(:delay_seconds, 0) * 1000000) as integer)),
        coalesce(created_at + cast(round(:at_most_seconds * 1000000) as integer), 9223372036854775807))
