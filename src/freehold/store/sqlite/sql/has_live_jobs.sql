-- Whether there is any live job, in whatever stage.
select exists (select 1 from job)
