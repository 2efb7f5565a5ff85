"""The outcome of a handler's result, exception or stop. All texts are cleaned and bounded.

An exception of a handler, or of a library that it calls, often quotes the value that it is about.
Secret arguments are hidden before a text is cut: a part of a secret would not be found.

Values and exceptions of a handler can run any code in their methods, and that code can raise
SystemExit or CancelledError. None of it may end the worker, hence `except BaseException`. A signal
raises nothing here: the worker handles signals in its event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from freehold.errors import BadArguments
from freehold.model import payload
from freehold.model.handler_exceptions import (
    Cancel,
    Fail,
    HandlerException,
    Pause,
    RetryLater,
    Snooze,
)
from freehold.model.job import Attempt, ErrorInfo
from freehold.model.outcome import Outcome, OutcomeKind
from freehold.model.retry import Retry
from freehold.model.secrets import hide_texts, secret_texts
from freehold.worker.execution.trace_text import trace_text
from freehold.worker.held_leases import HeldLease, StopReason

MESSAGE_LIMIT = 2_000
TRACE_LIMIT = 8_000


def of_result(value: Any, ran_seconds: float, attempt: Attempt) -> Outcome:
    """A result that cannot be stored fails the job for good: a retry would only repeat it."""
    if value is None:
        return Outcome(kind=OutcomeKind.SUCCESS, ran_seconds=ran_seconds)
    try:
        result = payload.encode("the result", value)
    except BaseException as error:  # encoding may run code of the handler's value
        name, text = type_name(error), safe(error, MESSAGE_LIMIT, _secrets(attempt))
        return Outcome(
            kind=OutcomeKind.FAIL,
            reason=text or f"encoding the result raised {name}",
            error=ErrorInfo(name, text),
            ran_seconds=ran_seconds,
        )
    return Outcome(kind=OutcomeKind.SUCCESS, result=result, ran_seconds=ran_seconds)


def of_exception(
    error: BaseException, retry: Retry, ran_seconds: float, attempt: Attempt
) -> Outcome:
    secrets = _secrets(attempt)
    if isinstance(error, HandlerException):
        return _of_handler_exception(error, ran_seconds, secrets)
    return Outcome(
        kind=OutcomeKind.ERROR,
        reason=safe(f"{type(error).__name__}: {text_of(error)}", 300, secrets),
        error=error_of(error, secrets),
        # sys.exit() and the like raise no Exception; they are retried too.
        retryable=retry.is_retryable(error) or not isinstance(error, Exception),
        ran_seconds=ran_seconds,
    )


def _of_handler_exception(
    error: HandlerException, ran_seconds: float, secrets: Sequence[str]
) -> Outcome:
    kinds = {
        RetryLater: OutcomeKind.RETRY_LATER,
        Snooze: OutcomeKind.SNOOZE,
        Pause: OutcomeKind.PAUSE,
        Cancel: OutcomeKind.CANCEL,
        Fail: OutcomeKind.FAIL,
    }
    kind = next((k for cls, k in kinds.items() if isinstance(error, cls)), OutcomeKind.ERROR)
    return Outcome(
        kind=kind,
        reason=safe(error.reason, MESSAGE_LIMIT, secrets) if error.reason else None,
        delay_seconds=getattr(error, "delay_seconds", None),
        ran_seconds=ran_seconds,
    )


def of_stop(lease: HeldLease, ran_seconds: float) -> Outcome | None:
    """The outcome of a stopped handler. None: the lease is lost, and nothing is written."""
    match lease.stop_reason:
        case StopReason.CANCELED:
            return Outcome(kind=OutcomeKind.CANCEL, reason="canceled", ran_seconds=ran_seconds)
        case StopReason.PAUSED:
            return Outcome(kind=OutcomeKind.PAUSE, reason="paused", ran_seconds=ran_seconds)
        case StopReason.TIMEOUT:
            seconds = lease.attempt.timeout_seconds
            return Outcome(
                kind=OutcomeKind.TIMEOUT,
                reason=f"it ran longer than its timeout of {seconds:g} s",
                error=ErrorInfo("Timeout", f"stopped after its timeout of {seconds:g} s"),
                ran_seconds=ran_seconds,
            )
        case StopReason.DRAIN:
            return Outcome(
                kind=OutcomeKind.DRAIN, reason="its worker was shut down", ran_seconds=ran_seconds
            )
    return None


def of_broken_objects(ran_seconds: float) -> Outcome:
    """Of a handler with a result or an exception that cannot even be examined."""
    text = "its result or exception raised an exception when the worker examined it"
    return Outcome(
        kind=OutcomeKind.ERROR,
        reason=text,
        error=ErrorInfo("BrokenObject", text),
        ran_seconds=ran_seconds,
    )


def of_misfit(error: BadArguments, wait_seconds: float, attempt: Attempt) -> Outcome:
    """The job waits so long for a worker whose code fits, and then fails without a retry."""
    secrets = _secrets(attempt)
    text = safe(f"its arguments cannot be decoded: {error}", MESSAGE_LIMIT, secrets)
    return Outcome(
        kind=OutcomeKind.MISFIT,
        reason=text,
        error=ErrorInfo(type_name(error), text),
        delay_seconds=wait_seconds,
    )


def _secrets(attempt: Attempt) -> Sequence[str]:
    if attempt.policy_json is None:
        return ()
    names = attempt.policy.secret_args
    return secret_texts(attempt.args, names) if names else ()


def error_of(error: BaseException, secrets: Sequence[str] = ()) -> ErrorInfo:
    try:
        trace = trace_text(error)
    except BaseException as second:
        trace = f"<formatting the traceback raised {type(second).__name__}>"
    return ErrorInfo(
        type_name(error),
        safe(error, MESSAGE_LIMIT, secrets),
        safe(trace, TRACE_LIMIT, secrets, keep_end=True),
    )


def type_name(error: BaseException) -> str:
    """With its module, because other modules may have a class of the same name."""
    kind = type(error)
    return safe(f"{kind.__module__}.{kind.__qualname__}", 200, keep_end=True)


def text_of(value: object) -> str:
    """str(value), which may raise for a value of a handler."""
    try:
        return str(value)
    except BaseException as error:
        return f"<its str() raised {type(error).__name__}>"


def safe(value: object, limit: int, secrets: Sequence[str] = (), *, keep_end: bool = False) -> str:
    """Text that every store accepts: no NUL, no lone surrogates, bounded; without the secrets."""
    clean = text = hide_texts(text_of(value), secrets)
    if type(text) is not str or not text.isascii() or "\0" in text:
        clean = text.replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
    if len(clean) <= limit:
        return clean
    return "…" + clean[-(limit - 1) :] if keep_end else clean[: limit - 1] + "…"
