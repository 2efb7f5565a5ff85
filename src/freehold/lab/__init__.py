"""Development tools: simulation, checker, demo, a PostgreSQL server. Nothing imports them."""
