-- Its time to start has passed, and it was never tried: a sweep cancels it.
(start_by is not null and attempt = 0 and start_by <= clock())
