select :position, id, created_at from job where waiting_key = :waiting_key and stage <> {leased}
