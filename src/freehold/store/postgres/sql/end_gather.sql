-- The ends of the jobs that a handler has gathered become the value of its step, once.
with given as (select :id::bigint as id, :token::bigint as token),
held as materialized (
    {lease_holds} for no key update of j
),
ended as (
    update {schema}.step s set kind = 'gathered', value = :value::json, hidden = :hidden::boolean
    from held h
    where s.job_id = h.id and s.name = :name::text and s.kind = 'gather'
)
select id from held
