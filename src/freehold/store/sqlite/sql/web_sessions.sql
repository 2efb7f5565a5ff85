select digest, token_digest, author, created_at, seen_at, expires_at from web_session
where expires_at > clock() order by expires_at desc limit :limit
