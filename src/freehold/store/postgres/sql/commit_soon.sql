-- For the rest of this transaction: a worker that freezes between its job's end and its commit
-- would keep everybody else from the row. The server lets go of it after this time.
select set_config('idle_in_transaction_session_timeout', :milliseconds::text, true)
