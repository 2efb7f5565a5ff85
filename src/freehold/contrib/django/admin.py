"""Pages of Django's admin: jobs, with the actions of an operator.

With the permission "view" a user sees jobs, without arguments, results and tracebacks; with
"change" these are shown on request, which the audit records, and jobs can be retried, canceled,
paused and resumed. The audit has the user's name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import path, reverse

from freehold.contrib.django.backend import FreeholdBackend, backend_of
from freehold.contrib.django.compat import task_backends
from freehold.contrib.django.models import QueueJob
from freehold.errors import BadInput, FreeholdError, JobNotFound
from freehold.model.history import TimelineEntry
from freehold.model.job import Job
from freehold.model.plural import count
from freehold.model.private_names import arguments_text, value_text
from freehold.model.state import State
from freehold.operator import JobDetail
from freehold.store.types import JobFilter

PAGE = 50
ACTIONS = ("retry", "cancel", "pause", "resume")
#: The action that changes nothing, and shows arguments, result and tracebacks of one job.
SHOW_PRIVATE = "show_private"
#: The interface that the audit names.
VIA = "django"


@admin.register(QueueJob)
class JobAdmin(admin.ModelAdmin):
    """Lists and single jobs; nothing is edited."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_urls(self) -> list[Any]:
        site = self.admin_site.admin_view
        return [
            path("", site(self.list_view), name="freehold_queuejob_changelist"),
            path("<str:alias>/<int:job_id>/", site(self.job_view), name="freehold_queuejob_change"),
        ]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """A page of jobs, newest first. A POST applies an action to those that are ticked."""
        self._check(request, change=request.method == "POST")
        aliases = _aliases()
        alias = request.GET.get("backend") or next(iter(aliases), "")
        if alias not in aliases:
            raise Http404("TASKS has no such backend of Freehold")
        if request.method == "POST":
            self._act(request, alias)
            return HttpResponseRedirect(request.get_full_path())
        context: dict[str, Any] = {"jobs": (), "next": None, "problem": None}
        try:
            with backend_of(alias).store.operator(VIA) as operator:
                page = operator.jobs(_filter(request.GET))
            context |= {"jobs": page.jobs, "next": _next(request.GET, page.next)}
        except FreeholdError as error:
            context["problem"] = str(error)
        choices = {"aliases": aliases, "alias": alias, "states": list(State), "actions": ACTIONS}
        return self._page(request, "list.html", title="Jobs", **context, **choices)

    def job_view(self, request: HttpRequest, alias: str, job_id: int) -> HttpResponse:
        """One job with its timeline. A POST applies an action to it, or shows its private data."""
        self._check(request, change=request.method == "POST")
        if alias not in _aliases():
            raise Http404("TASKS has no such backend of Freehold")
        is_shown = request.POST.get("action") == SHOW_PRIVATE
        if request.method == "POST" and not is_shown:
            self._act(request, alias)
            return HttpResponseRedirect(request.path)
        try:
            with backend_of(alias).store.operator(VIA, writes=is_shown) as operator:
                if is_shown:
                    operator.record_private_look(job_id, request.user.get_username())
                detail = operator.show(job_id)
                causes = operator.explain(job_id)
        except JobNotFound as error:
            raise Http404(str(error)) from None
        job = detail.job
        private = _private(job) if is_shown else None
        return self._page(
            request,
            "job.html",
            title=f"Job {job.id} of {job.task}",
            alias=alias,
            job=job,
            causes=[cause.text for cause in causes],
            private=private,
            timeline=list(_lines(detail, with_traces=private is not None)),
            actions=ACTIONS,
            show_private=SHOW_PRIVATE,
        )

    def _check(self, request: HttpRequest, *, change: bool) -> None:
        may = self.has_change_permission if change else self.has_view_permission
        if not may(request):
            raise PermissionDenied

    def _act(self, request: HttpRequest, alias: str) -> None:
        """All chosen jobs are changed, or none."""
        verb = request.POST.get("action", "")
        texts = request.POST.getlist("job")
        try:
            if verb not in ACTIONS:
                raise BadInput("choose an action")
            if not texts:
                raise BadInput("choose the jobs")
            ids = [int(each) for each in texts]
            with backend_of(alias).store.operator(VIA, writes=True) as operator:
                act = getattr(operator, verb)
                by, reason = request.user.get_username(), request.POST.get("reason") or None
                done = act(*ids, by=by, reason=reason)
        except (FreeholdError, ValueError) as error:
            messages.error(request, f"Nothing was changed: {error}")
            return
        messages.success(request, f"{verb}: {count(len(done), 'job')}")

    def _page(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse:
        request.current_app = self.admin_site.name
        shared = self.admin_site.each_context(request)
        shared |= {"opts": self.model._meta, "may_change": self.has_change_permission(request)}
        site = self.admin_site.name
        shared["list_url"] = reverse("admin:freehold_queuejob_changelist", current_app=site)
        return TemplateResponse(request, f"admin/freehold/{template}", {**shared, **context})


def _aliases() -> list[str]:
    return [each.alias for each in task_backends.all() if isinstance(each, FreeholdBackend)]


def _filter(given: Any) -> JobFilter:
    state, before = given.get("state"), given.get("before")
    if state and state not in list(State):
        raise BadInput(f"there is no state {state!r}")
    if before and not before.isdecimal():
        raise BadInput(f"before={before!r} is not the number of a job")
    return JobFilter(
        states=frozenset({State(state)} if state else ()),
        queue=given.get("queue") or None,
        task=given.get("task") or None,
        before=int(before) if before else None,
        limit=PAGE,
    )


def _next(given: Any, before: int | None) -> str | None:
    if before is None:
        return None
    return urlencode({**{name: value for name, value in given.items() if value}, "before": before})


def _private(job: Job) -> dict[str, str]:
    """What is shown on request, masked as in the dashboard."""
    found = {"Arguments": arguments_text(job.args)}
    report = job.report
    if report is not None and report.state is State.SUCCEEDED:
        found["Result"] = value_text(report.result)
    return found


def _lines(detail: JobDetail, *, with_traces: bool) -> Iterable[dict[str, Any]]:
    for entry in detail.timeline:
        yield {"entry": entry, "error": _error_text(entry, with_traces)}


def _error_text(entry: TimelineEntry, with_traces: bool) -> str:
    if entry.error is None:
        return ""
    if not with_traces:
        return entry.error.type
    return entry.error.trace or f"{entry.error.type}: {entry.error.message}"
