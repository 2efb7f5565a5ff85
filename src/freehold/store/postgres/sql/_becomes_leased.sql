stage = {leased}, attempt = attempt + 1, lease_owner = :owner::text, lease_token = token,
        leased_at = now,
        lease_expires_at = now + make_interval(secs => :lease_seconds::double precision),
        reason = null
