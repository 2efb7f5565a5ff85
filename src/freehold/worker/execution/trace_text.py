"""The text of an exception's traceback, as `traceback.format_exception` writes it.

That function parses the source of each frame again every time, which takes longer than the rest of
an attempt; a job that fails often fails at the same place. Here the text of a frame is made once.
Exceptions that are rare or complicated (groups, notes, syntax errors, names that are not known) are
left to that function.
"""

from __future__ import annotations

import traceback
from types import CodeType, TracebackType

_HEAD = "Traceback (most recent call last):\n"
_CAUSE = "\nThe above exception was the direct cause of the following exception:\n\n"
_CONTEXT = "\nDuring handling of the above exception, another exception occurred:\n\n"
#: Their text has more than a type and a message.
_LONGER = (BaseExceptionGroup, SyntaxError, NameError, AttributeError, ImportError)
_CACHED_FRAMES = 1000
#: The cause of a cause and so on; also ends a chain that is a circle.
_CHAIN_LIMIT = 20
#: More frames of one function in a row are shown as one.
_REPEATED = 3

#: (id of the code, position) -> the code, so that its id stays its own, and the text.
_frames: dict[tuple[int, int], tuple[CodeType, str]] = {}


def trace_text(error: BaseException) -> str:
    texts: list[str] = []
    shown: BaseException | None = error
    for _ in range(_CHAIN_LIMIT):
        if shown is None:
            return "".join(reversed(texts))
        text = _own_text(shown)
        if text is None:
            break
        texts.append(text)
        if shown.__cause__ is not None:
            texts.append(_CAUSE)
            shown = shown.__cause__
        elif shown.__context__ is not None and not shown.__suppress_context__:
            texts.append(_CONTEXT)
            shown = shown.__context__
        else:
            shown = None
    return "".join(traceback.format_exception(error))


def _own_text(error: BaseException) -> str | None:
    """Without its cause. None: `traceback` must write it."""
    if isinstance(error, _LONGER) or hasattr(error, "__notes__"):
        return None
    frames = _frame_texts(error.__traceback__)
    if frames is None:
        return None
    try:
        message = str(error)
    except BaseException:
        return None
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("__main__", "builtins"):
        name = f"{kind.__module__}.{name}"
    last = f"{name}: {message}\n" if message else f"{name}\n"
    return f"{_HEAD}{''.join(frames)}{last}" if frames else last


def _frame_texts(trace: TracebackType | None) -> list[str] | None:
    texts: list[str] = []
    last, in_row = None, 0
    while trace is not None:
        code = trace.tb_frame.f_code
        in_row = in_row + 1 if code is last else 1
        if in_row > _REPEATED:
            return None
        last = code
        known = _frames.get((id(code), trace.tb_lasti))
        texts.append(known[1] if known is not None else _new_frame_text(trace, code))
        trace = trace.tb_next
    return texts


def _new_frame_text(trace: TracebackType, code: CodeType) -> str:
    text = "".join(traceback.extract_tb(trace, limit=1).format())
    if len(_frames) >= _CACHED_FRAMES:
        _frames.clear()
    _frames[id(code), trace.tb_lasti] = code, text
    return text
