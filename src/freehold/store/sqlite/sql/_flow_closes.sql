(sealed_at is not null and total <= succeeded + s.ended_well + failed + s.ended_badly + canceled + s.ended_canceled)
