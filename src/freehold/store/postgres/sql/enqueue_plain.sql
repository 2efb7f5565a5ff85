-- properties: adds_rows
{plain_job} returning id, null
