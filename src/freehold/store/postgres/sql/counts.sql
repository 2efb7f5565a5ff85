-- Live jobs by stage, each counted up to a bound.
select c.*, h.*
from {schema}.job_counts(:bound::integer) c
cross join {schema}.held_back_counts(:bound::integer) h
