select {queue_columns}
from (select :queue::text as name) n
{queue_joins}
