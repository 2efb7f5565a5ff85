-- Live jobs by what they wait for, each counted up to a bound.
select * from {schema}.counts(:bound::integer)
