-- And when those who wait for it were last told of something.
{plain_job} returning id, {told_ago}
