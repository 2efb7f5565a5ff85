id = :id and lease_token = :token and lease_owner = :owner and stage = {leased}
    and lease_expires_at > clock()
