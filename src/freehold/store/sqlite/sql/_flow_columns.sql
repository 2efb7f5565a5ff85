f.id, f.kind, f.name, f.key, f.state, f.total, f.succeeded, f.failed, f.canceled, f.created_at, f.created_by,
    f.sealed_at, f.closed_at, f.canceled_at, f.canceled_by, f.cancel_reason, f.parent_job, f.parent, f.node, f.counted_state,
    f.due, f.change, f.reached
