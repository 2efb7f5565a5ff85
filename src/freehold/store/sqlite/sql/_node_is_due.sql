((n.open_sources = 0 and (n.bad_sources = 0 or n.on_failure = 'run')) or (n.bad_sources > 0 and n.on_failure = 'cancel'))
