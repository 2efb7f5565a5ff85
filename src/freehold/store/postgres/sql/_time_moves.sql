:replaces_run_at::boolean and (j.stage = {scheduled} or j.stage = {ready} and j.target is null)
