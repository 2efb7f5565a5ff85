select pg_notify('leasehold_{schema}', hint)
from json_to_recordset(:rows::json) as g(hint text)
