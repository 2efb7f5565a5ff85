"""A task's arguments: checked against its signature when enqueued, typed again when run.

Arguments are stored as one JSON object by parameter name, so that other languages can write them
too. Values that would not decode to an equal value are refused before anything is written.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum, auto
from functools import cached_property
from typing import Any, NamedTuple, TypeVar, get_type_hints

import msgspec

from freehold.dependencies import CONTEXT_PARAMETER as CONTEXT_PARAMETER
from freehold.dependencies import dependencies_of, is_dependency
from freehold.errors import BadArguments, BadResult, BadSettings
from freehold.model import payload
from freehold.model.secrets import HIDDEN
from freehold.value_types import error_text, has_secret, supported_type, typed_decoder

T = TypeVar("T")

#: The errors of a decoder whose data do not fit its type.
_MISFITS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class ShownParameter(NamedTuple):
    """A parameter of a task: its type in words, and a value to begin with."""

    name: str
    type: str
    is_required: bool
    is_secret: bool
    example: Any


def _shown_parameter(parameter: inspect.Parameter, is_secret: bool) -> ShownParameter:
    kind = parameter.annotation
    type_text = "any" if kind in (Any, parameter.empty) else inspect.formatannotation(kind)
    is_required = parameter.default is parameter.empty
    example = None if is_required or is_secret else parameter.default
    try:
        example = msgspec.to_builtins(example)
    except TypeError:
        example = None
    return ShownParameter(parameter.name, type_text, is_required, is_secret, example)


class Signature:
    """Encodes and decodes the arguments of one function."""

    def __init__(self, task: str, function: Callable[..., Any]) -> None:
        self.task = task
        full = inspect.signature(function)
        self.wants_context = CONTEXT_PARAMETER in full.parameters
        hints = _hints(task, function)
        #: What is made for each attempt, beside the arguments.
        self.dependencies = dependencies_of(task, function, hints)
        self.needs_context = self.wants_context or self.dependencies is not None
        # The types themselves, also where the function's module keeps annotations as strings.
        typed = [
            p.replace(annotation=hints.get(p.name, p.annotation)) for p in full.parameters.values()
        ]
        made = {p.name: p for p in typed if p.name == CONTEXT_PARAMETER or is_dependency(p)}
        self._parameters = parameters = [p for p in typed if p.name not in made]
        self.secret_args = tuple(p.name for p in parameters if has_secret(p.annotation))
        self._return_type = hints.get("return", Any)
        self.secret_result = has_secret(self._return_type)
        #: What a call passes: without the context and dependencies.
        self.of_calls = full.replace(parameters=parameters)
        self._pass_styles = [(p.name, _pass_style(p, parameters)) for p in parameters]
        self._what = f"the call of task {task}"
        # If all parameters can be positional, most calls need no `Signature.bind`.
        plain = all(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in parameters)
        self._names = tuple(p.name for p in parameters) if plain else None
        self._needed = sum(p.default is inspect.Parameter.empty for p in parameters)
        for each in made.values():
            self._check_made(each)
        self._types = hints
        self._decoder = self._make_decoder(hints)

    @property
    def parameters(self) -> list[ShownParameter]:
        """For people and forms: without the values of secrets."""
        return [_shown_parameter(p, p.name in self.secret_args) for p in self._parameters]

    def _check_made(self, made: inspect.Parameter) -> None:
        """The context and dependencies are passed by name, which excludes positional-only
        parameters beside them."""
        if made.kind is inspect.Parameter.KEYWORD_ONLY:
            return
        positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
        if made.kind in positional or any(p.kind in positional for p in self._parameters):
            raise BadSettings(
                f"task {self.task} takes positional arguments: make {made.name} keyword-only "
                f"(`*, {made.name}`)"
            )

    def _make_decoder(
        self, hints: Mapping[str, Any], without: Collection[str] = ()
    ) -> msgspec.json.Decoder[Any]:
        try:
            fields = [
                _field(p, hints.get(p.name, Any)) for p in self._parameters if p.name not in without
            ]
            # Required fields first; the order does not matter for JSON objects.
            fields.sort(key=len)
            struct = msgspec.defstruct("Arguments", fields, forbid_unknown_fields=True)
            return typed_decoder(struct)
        except (TypeError, ValueError) as error:
            raise BadSettings(
                f"task {self.task} has a parameter of a type that JSON cannot represent: {error}"
            ) from None

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bytes:
        """The JSON of a call. Raises BadArguments with the argument that does not fit, or that the
        handler would get as another value."""
        values = self._bound(args, kwargs)
        data = payload.encode(self._what, values)
        try:
            decoded = self._decoder.decode(data)
        except _MISFITS as error:
            raise self._misfit(error) from None
        for name, value in values.items():
            arrived = getattr(decoded, name)
            if arrived != value:
                raise self._other_value(name, value, arrived)
        return data

    def encode_partly(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], later: type[T]
    ) -> tuple[bytes, dict[str, T]]:
        """The JSON of a call whose values of the type ``later`` are known later; and those, by
        parameter. The others are checked as by `encode`."""
        values = self._bound(args, kwargs)
        missing = {name: value for name, value in values.items() if isinstance(value, later)}
        given = {name: value for name, value in values.items() if name not in missing}
        for name, value in given.items():
            if isinstance(value, list | tuple | dict) and _contains(value, later):
                raise BadArguments(
                    f"task {self.task}: argument {name} contains the result of a node: pass each "
                    "as an argument of its own"
                )
        if not missing:
            return self.encode(args, kwargs), {}
        data = payload.encode(self._what, given)
        try:
            decoded = self._make_decoder(self._types, without=missing.keys()).decode(data)
        except _MISFITS as error:
            raise self._misfit(error) from None
        for name, value in given.items():
            if getattr(decoded, name) != value:
                raise self._other_value(name, value, getattr(decoded, name))
        return data, missing

    def type_of(self, parameter: str) -> Any:
        return self._types.get(parameter, Any)

    @property
    def return_type(self) -> Any:
        return self._return_type

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._names is not None:
            if not kwargs and self._needed <= len(args) <= len(self._names):
                return dict(zip(self._names, args, strict=False))
            if not args and tuple(kwargs) == self._names:
                return kwargs
        try:
            return self.of_calls.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise BadArguments(f"task {self.task}: {error}; {self._shown()}") from None

    def _other_value(self, name: str, value: Any, arrived: Any) -> BadArguments:
        if name in self.secret_args:
            what = f"the secret argument {name} would arrive as another value"
        else:
            what = f"argument {name}={_short(value)} would arrive as {_short(arrived)}"
        return BadArguments(
            f"task {self.task}: {what}; annotate the parameter with its type, or pass plain JSON"
        )

    def check(self, data: bytes) -> None:
        """Checks JSON from outside. Raises BadArguments."""
        payload.check_bytes(self._what, data)
        try:
            self._decoder.decode(data)
        except _MISFITS as error:
            raise self._misfit(error) from None

    def _misfit(self, error: Exception) -> BadArguments:
        text, path = error_text(error)
        if re.split(r"[.\[]", path)[0] in self.secret_args:
            text = "the value of a secret argument does not fit its type"
        where = f" - at `{path}`" if path else ""
        return BadArguments(f"task {self.task}: {text}{where}; {self._shown()}")

    def decode(self, data: bytes | str) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named arguments of the call, with their types."""
        try:
            decoded = self._decoder.decode(data)
        except _MISFITS as error:
            raise self._misfit(error) from None
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, style in self._pass_styles:
            value = getattr(decoded, name)
            if value is msgspec.UNSET:
                continue
            if style is _PassStyle.BY_NAME:
                named[name] = value
            elif style is _PassStyle.BY_POSITION:
                positional.append(value)
            elif style is _PassStyle.REST_BY_POSITION:
                positional += value
            else:
                named.update(value)
        return positional, named

    def decode_result(self, job_id: int, data: str) -> Any:
        """A stored result as a value of the return type. Raises BadResult."""
        try:
            return self._result_decoder.decode(data)
        except (TypeError, msgspec.MsgspecError, RecursionError) as error:
            text, path = error_text(error)
            where = f" - at `{path}`" if path else ""
            if self.secret_result:
                text, where = "the secret value does not fit", ""
            raise BadResult(
                f"job {job_id} of {self.task} has succeeded, but its stored result does not fit "
                f"the return type `{inspect.formatannotation(self._return_type)}`: {text}{where}",
                job_id,
            ) from None

    @cached_property
    def _result_decoder(self) -> msgspec.json.Decoder[Any]:
        """Made at the first use: most processes that know a task never read its results."""
        return typed_decoder(supported_type(self._return_type))

    def _shown(self) -> str:
        parameters = [
            p
            if p.name not in self.secret_args or p.default is p.empty
            else p.replace(default=_HIDDEN)
            for p in self._parameters
        ]
        return f"it takes {inspect.Signature(parameters)}"


class _Hidden:
    """The default of a secret parameter, where a signature is shown."""

    def __repr__(self) -> str:
        return HIDDEN


_HIDDEN = _Hidden()


class _PassStyle(Enum):
    """How an argument is passed to the function."""

    BY_NAME = auto()
    BY_POSITION = auto()
    REST_BY_NAME = auto()
    REST_BY_POSITION = auto()


def _pass_style(parameter: inspect.Parameter, among: Iterable[inspect.Parameter]) -> _PassStyle:
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL:
            return _PassStyle.REST_BY_POSITION
        case inspect.Parameter.VAR_KEYWORD:
            return _PassStyle.REST_BY_NAME
        case inspect.Parameter.POSITIONAL_ONLY:
            return _PassStyle.BY_POSITION
        case inspect.Parameter.KEYWORD_ONLY:
            return _PassStyle.BY_NAME
    # Parameters before *args must be passed by position.
    has_rest = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in among)
    return _PassStyle.BY_POSITION if has_rest else _PassStyle.BY_NAME


def _hints(task: str, function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        raise BadSettings(
            f"task {task}: {error}; its parameters' types must be importable where it is defined"
        ) from None


def _field(parameter: inspect.Parameter, hint: Any) -> tuple[Any, ...]:
    """A struct's field: (name, type) if required, else (name, type, default)."""
    hint = supported_type(hint)
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return (parameter.name, tuple[hint, ...], ())
    if parameter.kind is inspect.Parameter.VAR_KEYWORD:
        return (parameter.name, dict[str, hint], msgspec.field(default_factory=dict))
    if parameter.default is inspect.Parameter.empty:
        return (parameter.name, hint)
    # The default of the function applies when it runs, so that a deployment can change it. UNSET is
    # not part of the type: msgspec accepts no union with it of a type that it does not know.
    return (parameter.name, hint, msgspec.UNSET)


def _contains(value: Any, kind: type[Any]) -> bool:
    inner = value.values() if isinstance(value, dict) else value
    return any(isinstance(each, kind) for each in inner)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
