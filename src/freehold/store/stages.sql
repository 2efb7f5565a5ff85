-- The stages of a live job: its name, the byte that is stored in job.stage, and the state that people see.
-- One byte, because the column is written three times for each job; a word would add some ten bytes of WAL.
-- A leased job is shown as running once it has started. model/state.py has the rules.
('pending',         'n', 'pending'),
('scheduled',       'w', 'queued'),
('ready',           'r', 'queued'),
('lane_head',       'R', 'queued'),
('follower',        'f', 'queued'),
('parked',          'u', 'queued'),
('leased',          'h', 'assigned'),
('backoff',         'b', 'queued'),
('paused',          'p', 'paused'),
('paused_follower', 'q', 'paused'),
('failed',          'x', 'failed'),
('limited',         'l', 'queued'),
('lane_paused',     't', 'queued')
