-- Finished members of a flow within a range of ids, in their order.
select {history_columns} from history h
where h.id between :first and :last and json_valid(h.policy) and json_extract(h.policy, '$.flow') = cast(:flow as integer)
    and h.state in (select value from json_each(:states))
order by h.id limit :limit
