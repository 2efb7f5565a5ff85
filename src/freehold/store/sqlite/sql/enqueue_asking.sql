-- Here nobody has to be told.
{plain_job} returning id, null
