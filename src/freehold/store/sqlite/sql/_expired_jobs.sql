select id from ({scanned_jobs}) where case :kind when 'queue' then queue else task end = :name
