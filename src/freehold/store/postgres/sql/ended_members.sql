-- Finished members of a flow within a range of ids, in their order.
select {history_columns} from {schema}.history h
where h.id between :first::bigint and :last::bigint and h.policy ->> 'flow' = :flow::text
  and h.state = any (:states::text[])
order by h.id limit :limit::integer
