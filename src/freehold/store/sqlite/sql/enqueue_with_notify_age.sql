-- Listeners see every commit in the file itself: there is no notification whose age matters.
{plain_job} returning id, created_at, null
