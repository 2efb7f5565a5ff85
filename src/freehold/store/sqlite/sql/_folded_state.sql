case when not {flow_closes} then 'open' when succeeded + s.ended_well >= total and (total > 0 or canceled_at is null) then 'succeeded'
    when canceled_at is not null or s.cancels then 'canceled' else 'failed' end
