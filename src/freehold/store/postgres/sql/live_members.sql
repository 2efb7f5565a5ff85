-- Live members of a flow within a range of ids, in their order.
select {job_columns} from {schema}.job j
where j.id between :first::bigint and :last::bigint and j.policy ->> 'flow' = :flow::text
order by j.id limit :limit::integer
