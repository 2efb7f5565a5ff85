-- The whole name of the error's type, or its end after a dot: `ValueError` matches `builtins.ValueError`.
(l.error_type = :error or substr(l.error_type, -length(:error) - 1) = '.' || :error)
