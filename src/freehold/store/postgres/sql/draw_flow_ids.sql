select nextval('{schema}.flow_id') from generate_series(1, :count::integer)
