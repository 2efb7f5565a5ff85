-- properties: not_notified
-- The ends of the jobs that a handler has gathered become the value of its step, once.
update step set kind = 'gathered', value = :value, hidden = :hidden
where job_id = :id and name = :name and kind = 'gather' and exists (select 1 from job where {lease_holds});

select id from job where {lease_holds}
