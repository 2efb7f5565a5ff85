-- properties: adds_rows
{plain_job} returning id, created_at::text, null
