select pg_notify('freehold_{schema}', hint)
from json_to_recordset(:rows::json) as g(hint text)
