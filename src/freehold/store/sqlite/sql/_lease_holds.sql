id = :id and lease_token = :token and lease_owner = :owner and stage = 'h'
    and lease_expires_at > clock()
