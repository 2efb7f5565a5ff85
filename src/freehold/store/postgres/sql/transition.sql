with {transitioning}
select id, unchanged and request_unchanged, unchanged, stop_request, stop_requested_by, new_reason from compared
