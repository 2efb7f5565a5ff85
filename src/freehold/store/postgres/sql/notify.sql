select pg_notify('freehold_{schema}', topic)
from json_to_recordset(:rows::json) as g(topic text)
