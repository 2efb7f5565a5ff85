-- Live members of a flow within a range of ids, in their order.
select {job_columns} from job j
where j.id between :first and :last and json_valid(j.policy) and json_extract(j.policy, '$.flow') = cast(:flow as integer)
order by j.id limit :limit
