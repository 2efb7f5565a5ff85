select {lane_columns}
from (select :target as target) n
{lane_joins}
where coalesce(h.id, f.id) is not null or p.target is not null
