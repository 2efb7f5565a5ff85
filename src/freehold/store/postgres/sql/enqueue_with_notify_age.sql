-- properties: adds_rows
-- Also returns how long ago workers were last notified of the queue.
{plain_job} returning id, created_at::text, {notify_age}
