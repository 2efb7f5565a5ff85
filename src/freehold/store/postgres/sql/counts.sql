-- Live jobs by stage, each counted up to a bound.
select * from {schema}.job_counts(:bound::integer)
