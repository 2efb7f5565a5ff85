-- properties: adds_rows
-- Also returns how long ago workers were last notified of the queue.
{plain_job} returning id, (extract(epoch from created_at) * 1000000)::bigint, {notify_age}
