-- The whole name of the error's type, or its end after a dot: `ValueError` matches `builtins.ValueError`.
(l.error_type = :error::text or right(l.error_type, length(:error::text) + 1) = '.' || :error::text)
