insert into flow_callback (flow, moment, job) values (:flow, :moment, :job)
