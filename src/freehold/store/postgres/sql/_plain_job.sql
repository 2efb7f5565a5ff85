-- One job that is due at once and has nothing but its task, queue, priority and arguments.
insert into {schema}.job (id, created_at, stage, priority, max_attempts, queue, task, args)
values (nextval('{schema}.job_id'), {schema}.clock(), {ready}, :priority::smallint,
        :max_attempts::smallint, :queue::text, :task::text, :args::json)
