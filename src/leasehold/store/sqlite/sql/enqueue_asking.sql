-- The same: here nobody has to be told.
insert into job (created_at, run_at, stage, priority, max_attempts, queue, task, args)
values (clock(), clock(), 'r', :priority, :max_attempts, :queue, :task, :args)
returning id, null
