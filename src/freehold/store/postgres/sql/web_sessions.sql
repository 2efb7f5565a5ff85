select digest, token_digest, author, created_at, seen_at, expires_at from {schema}.web_session
where expires_at > (select {schema}.clock()) order by expires_at desc limit :limit::integer
