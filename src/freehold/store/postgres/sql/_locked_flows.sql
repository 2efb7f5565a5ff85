select unnest(string_to_array(current_setting('freehold.flows'), ',')::bigint[]) as flow
