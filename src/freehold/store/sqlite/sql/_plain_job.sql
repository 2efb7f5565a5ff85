-- One job that is due at once and has nothing but its task, queue, priority and arguments.
insert into job (created_at, stage, priority, max_attempts, queue, task, args)
values (clock(), {ready}, :priority, :max_attempts, :queue, :task, :args)
