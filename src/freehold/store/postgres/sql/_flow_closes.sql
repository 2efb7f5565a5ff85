(f.sealed_at is not null and f.total <= f.succeeded + s.succeeded + f.failed + s.failed + f.canceled + s.canceled)
