stage = :seen_stage and (stage <> {leased} or (
    lease_token = :token and lease_owner = :owner
    and (lease_expires_at <= clock()) = :expired)) and (not :late or {is_late})
