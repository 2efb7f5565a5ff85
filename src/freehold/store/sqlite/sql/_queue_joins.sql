left join queue s on s.name = n.name
left join queue p on p.name = n.name and p.paused_at is not null
    and coalesce(p.paused_until > clock(), 1)
