select {lane_columns}
from (select :target::text as target) n
{lane_joins}
where coalesce(h.id, f.id) is not null or p.target is not null
