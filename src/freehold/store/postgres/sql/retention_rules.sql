select kind, name, days, scanned_to, scanned_id from {schema}.retention_rule order by kind, name
