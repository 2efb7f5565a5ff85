"""Types of arguments and results that msgspec does not decode by itself: pydantic models, paths,
time zones, and unions with them. `model/payload.py` encodes their values.

pydantic is not imported: a model is recognised by its methods.
"""

from __future__ import annotations

import contextlib
import re
import types
from collections.abc import Iterable
from pathlib import PurePath
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints
from zoneinfo import ZoneInfo

import msgspec

from freehold.decoders import decoder
from freehold.model.payload import encode_value, is_model
from freehold.model.plural import count
from freehold.model.secrets import Secret

#: How msgspec ends its messages: "- at `$.field[...]`", or "- at `key` in `$.field`".
_OUTER_PATH = re.compile(r"(?P<text>.*) - at (?:`key` in )?`\$(?P<path>.*)`", re.DOTALL)


class FieldError(ValueError):
    """A value that does not fit, and the path of the field inside the value."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.path = path


def typed_decoder(hint: Any) -> msgspec.json.Decoder[Any]:
    """A decoder for any supported type. Raises TypeError for another."""
    return decoder(supported_type(hint), value_of)


def value_of(kind: Any, value: Any) -> Any:
    """A value of a type that msgspec does not know, from its decoded JSON."""
    kind = get_origin(kind) or kind
    if isinstance(kind, _AnyOf):
        return kind.value_of(value)
    if is_model(kind):
        return _model_of(kind, value)
    if _is_text_type(kind) and isinstance(value, str):
        return _from_text(kind, value)
    if isinstance(value, kind):
        return value
    raise FieldError(f"Expected `{kind.__name__}`, got `{type(value).__name__}`")


def _model_of(kind: Any, value: Any) -> Any:
    """From JSON, not from Python values: a strict model accepts a date as text only in JSON."""
    try:
        return kind.model_validate_json(encode_value(value))
    except ValueError as error:
        # Without the input, which the text of pydantic's error has, and which may be secret.
        errors = getattr(error, "errors", None)
        if errors is None:
            raise
        first, *others = errors(include_url=False, include_input=False, include_context=False)
        more = f" (and {count(len(others), 'more error')})" if others else ""
        path = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in first["loc"])
        raise FieldError(first["msg"] + more, path) from None


def _from_text(kind: type[Any], text: str) -> Any:
    try:
        return kind(text)
    except (ValueError, OSError, LookupError) as error:  # ZoneInfoNotFoundError is a KeyError
        reason = error.args[0] if error.args else error
        raise FieldError(f"Invalid `{kind.__name__}`: {reason}") from None


def _is_text_type(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, PurePath | ZoneInfo)


def error_text(error: BaseException) -> tuple[str, str]:
    """Of a decoder's error: what is wrong, and the path of the field."""
    found = _OUTER_PATH.fullmatch(str(error))
    inner = error.__cause__.path if isinstance(error.__cause__, FieldError) else ""
    text, outer = (found["text"], found["path"]) if found else (str(error), "")
    return text, (outer + inner).removeprefix(".")


# -- unions ----------------------------------------------------------------------------------------


class _AnyOf(type):
    """Stands in a type for a union that msgspec refuses; its values are those of the members."""

    decoders: tuple[msgspec.json.Decoder[Any], ...]
    names: str

    def __instancecheck__(cls, _value: object) -> bool:
        return True

    def value_of(cls, value: Any) -> Any:
        """Of the members that accept the value, the first that would be stored as the same JSON: a
        model that ignores unknown fields accepts the JSON of many others."""
        data = encode_value(value)
        found: list[Any] = []
        for each in cls.decoders:
            try:
                found.append(each.decode(data))
            except msgspec.ValidationError:
                continue
            if msgspec.json.decode(encode_value(found[-1])) == value:
                return found[-1]
        if not found:
            raise FieldError(f"Expected one of {cls.names}, and the value fits none of them")
        return found[0]


def supported_type(hint: Any) -> Any:
    """The same type, with an `_AnyOf` in place of each union that msgspec refuses. Unions inside of
    dataclasses and structs stay as they are, so that msgspec refuses them."""
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _supported_union(hint, args)
    if not args or origin is None:
        return hint
    changed = tuple(supported_type(each) for each in args)
    if all(new is old for new, old in zip(changed, args, strict=True)):
        return hint
    return Annotated[changed] if origin is Annotated else origin[changed]


def _supported_union(hint: Any, members: tuple[Any, ...]) -> Any:
    some = [each for each in members if each is not type(None)]
    known = [each for each in some if is_model(_bare(each)) or _is_text_type(_bare(each))]
    if not known or len(some) == 1:
        return hint
    texts = [each for each in some if _bare(each) is str or _is_text_type(_bare(each))]
    if len(texts) > 1:
        raise TypeError(
            f"values of {_names(texts)} look the same in JSON - type `{hint}` is not supported"
        )
    attributes = {"decoders": tuple(map(typed_decoder, some)), "names": _names(some)}
    either: Any = _AnyOf("AnyOf", (), attributes)
    return either | None if len(some) < len(members) else either


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _names(kinds: list[Any]) -> str:
    return ", ".join(f"`{getattr(_bare(kind), '__name__', kind)}`" for kind in kinds)


# -- secrets ---------------------------------------------------------------------------------------


def has_secret(hint: Any) -> bool:
    """Whether a type has the mark `Secret`, anywhere inside. The value is then hidden as a whole:
    what a class shows of its own fields is not under our control."""
    waiting, seen = [hint], list[Any]()
    while waiting:
        each = waiting.pop()
        if each is Secret or isinstance(each, Secret):
            return True
        if not any(each is other for other in seen):
            seen.append(each)
            waiting += _parts_of_type(each)
    return False


def _parts_of_type(hint: Any) -> Iterable[Any]:
    if get_origin(hint) is Annotated:
        return get_args(hint)[0], *hint.__metadata__
    if is_model(hint):
        fields = hint.model_fields.values()
        return [part for field in fields for part in (field.annotation, *field.metadata)]
    if isinstance(hint, type) and hint.__module__ != "builtins":
        with contextlib.suppress(NameError):  # of a class that cannot be decoded either
            return get_type_hints(hint, include_extras=True).values()
    alias = getattr(hint, "__value__", None) or getattr(hint, "__supertype__", None)
    return get_args(hint) if alias is None else (alias,)
