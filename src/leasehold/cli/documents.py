"""Jobs as JSON documents: what is stored as JSON text becomes part of the document."""

from __future__ import annotations

from typing import Any

import msgspec

from leasehold.model.job import Job
from leasehold.operate import Story


def job_document(job: Job, show_args: bool) -> dict[str, Any]:
    """``args`` is null unless asked for: jobs carry private data, and output is kept in logs."""
    document: dict[str, Any] = msgspec.to_builtins(job)
    document["args"] = msgspec.json.decode(job.args) if show_args else None
    policy = document.pop("policy_json")
    document["policy"] = msgspec.json.decode(policy) if policy else {}
    if job.request is not None:
        document["request"] = job.request.name.lower()
    return document


def story_document(story: Story, show_args: bool) -> dict[str, Any]:
    return {
        "job": job_document(story.job, show_args),
        "timeline": msgspec.to_builtins(story.timeline),
        "log": [{"at": note.at, "token": note.token, "line": note.line} for note in story.log],
    }
