-- The fence: which of the given (id, token) this owner still holds, by the database's clock. In the
-- order of ids, in which all verbs take their locks.
select j.id, j.lease_token as token from {schema}.job j join given g on g.id = j.id
    where j.id = any (array(select id from given))
      and j.lease_token = g.token and j.lease_owner = :owner::text and {is_leased}
      and j.lease_expires_at > {schema}.clock()
    order by j.id
