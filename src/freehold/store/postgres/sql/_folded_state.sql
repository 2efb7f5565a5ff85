case when not {flow_closes} then 'open' when f.succeeded + s.succeeded >= f.total and (f.total > 0 or f.canceled_at is null) then 'succeeded'
    when f.canceled_at is not null or s.cancels then 'canceled' else 'failed' end
