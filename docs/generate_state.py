"""Write docs/state.schema.json from the classes of `makeway.state`: python docs/generate_state.py."""

from __future__ import annotations

import ast
import enum
import inspect
import json
import textwrap
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway.model import JobSpec, Signal, UserSignal
from makeway.state import VERSION, Grace, Held, Standing, State

PAGE = Path(__file__).with_name("state.schema.json")
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def descriptions(cls: type[Any]) -> dict[str, str]:
    """Return field -> the text written below it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, text in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant)
        ):
            found[field.target.id] = inspect.cleandoc(str(text.value.value)).replace("\n", " ")
    return found


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the schema of a type."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if kind is Any:
        return {}
    if origin in (typing.Union, types.UnionType):
        options = [schema_of(each) for each in inner if each is not type(None)]
        return {"anyOf": [*options, {"type": "null"}]} if type(None) in inner else {"anyOf": options}
    if origin in (tuple, frozenset):
        return {"type": "array", "items": schema_of(inner[0])}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1]) or True}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    return {"$ref": f"#/$defs/{kind.__name__}"}


def table_of(cls: type[Any]) -> dict[str, Any]:
    """Return the schema of an attrs class."""
    texts: dict[str, str] = {}
    for base in cls.__mro__[-2::-1]:
        texts |= descriptions(base)
    hints = typing.get_type_hints(cls)
    keys = {}
    for field in attrs.fields(cls):
        keys[field.name] = schema_of(hints[field.name])
        if field.name in texts:
            keys[field.name] = {**keys[field.name], "description": texts[field.name]}
    needed = [field.name for field in attrs.fields(cls) if field.default is attrs.NOTHING]
    table: dict[str, Any] = {"type": "object", "properties": keys, "additionalProperties": False}
    return {**table, "required": needed} if needed else table


def render() -> str:
    """Return the file."""
    whole = table_of(State)
    whole["properties"]["makeway_state"] = {"const": VERSION, "description": "Version of the format."}
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "State of a makeway run",
        "description": "What `Engine.save` returns and `Engine.adopt` takes; see adoption.md.",
        **whole,
        "required": ["makeway_state"],
        "$defs": {
            cls.__name__: table_of(cls) for cls in (Standing, Held, Grace, Signal, JobSpec, UserSignal)
        },
    }
    return json.dumps(document, indent=1) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
