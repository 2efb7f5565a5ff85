-- properties: adds_rows
{plain_job} returning id, (extract(epoch from created_at) * 1000000)::bigint
