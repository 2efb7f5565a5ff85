-- The key of a flow that is open again, unless another open one has it by now.
(select f.key where f.key is not null and not exists (
    select from {schema}.flow other where other.held_key = f.key and other.held_key is not null))
