select digest, token_digest, author, created_at, seen_at, expires_at,
    seen_at < clock() - cast(:touch_seconds * 1000000 as integer) as is_stale
from web_session
where digest = :digest and expires_at > clock()
    and seen_at > clock() - cast(:idle_seconds * 1000000 as integer)
