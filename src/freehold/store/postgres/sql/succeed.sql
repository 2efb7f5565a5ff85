-- The commonest end: out of the live table, into history, in one statement.
with {succeeding}
select id from held
