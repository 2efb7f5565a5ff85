-- The key of a flow that is open again, unless another open one has it by now.
case when not exists (select 1 from flow other where other.held_key = flow.key and other.held_key is not null) then key end
