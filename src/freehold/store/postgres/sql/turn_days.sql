-- Whole days are dropped, and the next ones prepared.
select {schema}.turn_days(:history_days::double precision, 7)
