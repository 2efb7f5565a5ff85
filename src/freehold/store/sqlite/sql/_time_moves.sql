:replaces_run_at and (stage = {scheduled} or stage = {ready} and target is null)
