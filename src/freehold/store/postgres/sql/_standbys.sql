-- An answer that a job exists, or has ended, must outlive a fail-over. A change is visible without its standbys if the
-- wait of its commit was canceled. The commit of this message waits for them again, and for all commits before it.
select case when current_setting('synchronous_standby_names') <> ''
            then pg_logical_emit_message(true, 'freehold', '') end
