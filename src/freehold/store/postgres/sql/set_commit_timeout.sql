-- For the rest of this transaction. A worker that freezes between the end of its job and the commit would
-- keep the row locked; the server ends its session after this time.
select set_config('idle_in_transaction_session_timeout', :milliseconds::text, true)
