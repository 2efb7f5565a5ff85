update counter set value = value + :count where name = 'flow_id';

with recursive drawn (id, left) as (
    select value - :count + 1, :count from counter where name = 'flow_id'
    union all select id + 1, left - 1 from drawn where left > 1
)
select id from drawn
