n.waits and n.open_sources = 0 and n.bad_sources > 0 and n.on_failure = 'hold'
