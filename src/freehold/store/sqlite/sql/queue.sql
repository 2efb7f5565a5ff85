select {queue_columns}
from (select :queue as name) n
{queue_joins}
