-- Records changes of jobs that the next statements of this transaction make, with the guard of those
-- statements: a change that will have no effect is not recorded.
insert into audit (at, by, via, verb, kind, subject, reason, before, after)
select clock(), :by, :via, :verb, 'job', cast(:id as text), :reason, :before, :after
where exists (
    select 1 from job where id = :id and stage = :seen_stage
      and (:token is null or lease_token = :token and (
          stop_request is null or (stop_request = 'pause' and :stop_request = 'cancel'))))
  or exists (select 1 from history where :seen_stage is null and id = :id and state = :seen_state)
