"""Describe the routes as OpenAPI: ``python -m makeway_local_world.daemon.describing`` writes openapi.json anew."""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway_local_world.daemon.app import ROUTES, pages
from makeway_local_world.daemon.verbs import VERBS
from makeway_local_world.requests import Request

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}
_QUERY: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "/v1/jobs": (("user", "string", "Only jobs of this user."),),
    "/v1/jobs/{id}/wait": (("longest", "number", "Seconds after which it is answered anyway; at most 55."),),
    "/v1/events": (
        (
            "after",
            "integer",
            "Begin after this step; else with what happens from now on. Last-Event-ID comes before it.",
        ),
        ("follow", "integer", "0: end with what has happened so far."),
    ),
    "/v1/history": (
        ("since", "number", "Unix time."),
        ("until", "number", "Unix time."),
        ("user", "string", "Only jobs of this user."),
        ("limit", "integer", "Only the last so many."),
    ),
}
_OBJECT = {"type": "object"}
_BODIES: Mapping[str, Mapping[str, Any]] = {
    "/v1/jobs": {"$ref": "#/components/schemas/Request"},
    "/v1/whom": {"$ref": "#/components/schemas/Request"},
    "/v1/commands": {
        "type": "object",
        "required": ["verb"],
        "properties": {
            "verb": {"type": "string", "enum": list(VERBS)},
            "jobs": {"type": "array", "items": {"type": "string"}},
            "user": {"type": ["string", "null"], "description": "All jobs of this user."},
            "all": {"type": "boolean", "description": "All jobs that the caller may change."},
            "value": {"type": "string", "description": "With signal: its name."},
            "changes": {"type": "object", "description": "With update: nice, priority, time (seconds)."},
        },
    },
    "/v1/drain": {"type": "object", "properties": {"reason": {"type": "string"}}},
    "/v1/reload": {
        "type": "object",
        "required": ["config"],
        "properties": {"config": {"type": "string", "description": "TOML"}, "source": {"type": "string"}},
    },
    "/v1/web": {
        "type": "object",
        "properties": {"control": {"type": "boolean"}, "port": {"type": "integer"}},
    },
}
_STATUSES = {
    "400": "wrong request",
    "403": "not allowed",
    "404": "no such job",
    "409": "refused, with the reason",
    "413": "too large",
    "507": "nothing can be stored now",
}


def describe() -> dict[str, Any]:
    """Return the description."""
    paths: dict[str, dict[str, Any]] = {}
    for method, path, handler in (*ROUTES, ("POST", "/v1/web", pages)):
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, handler)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "makeway's daemon",
            "version": "1",
            "description": "HTTP over a unix socket. Who asks is what the kernel says of the other end.",
        },
        "servers": [{"url": "http://localhost", "description": "the unix socket; any host name will do"}],
        "paths": paths,
        "components": {"schemas": {"Request": _schema(Request), "Error": _ERROR}},
    }


_ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}


def _operation(method: str, path: str, handler: Any) -> dict[str, Any]:
    summary = (handler.__doc__ or "").strip().partition("\n")[0]
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
        for _ in re.findall(r"\{id\}", path)
    ]
    if method == "GET":
        parameters += [
            {"name": name, "in": "query", "schema": {"type": kind}, "description": text}
            for name, kind, text in _QUERY.get(path, ())
        ]
    kind = "text/event-stream" if path == "/v1/events" else "application/json"
    good = "201" if (method, path) == ("POST", "/v1/jobs") else "200"
    found: dict[str, Any] = {
        "operationId": handler.__name__.rstrip("_"),
        "summary": summary,
        "parameters": parameters,
        "responses": {good: {"description": "done", "content": {kind: {"schema": _OBJECT}}}},
    }
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    found["responses"] |= {code: {"description": text, "content": error} for code, text in _STATUSES.items()}
    if method == "POST" and path in _BODIES:
        found["requestBody"] = {"content": {"application/json": {"schema": _BODIES[path]}}}
    return found


def _schema(cls: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _type(hints[field.name]) for field in attrs.fields(cls)},
    }


def _type(hint: Any) -> dict[str, Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is typing.Literal:
        return {"type": "string", "enum": list(inner)}
    if origin is tuple:
        return {"type": "array", "items": _type(inner[0])}
    if origin in (typing.Union, types.UnionType):
        (only,) = (each for each in inner if each is not type(None))
        return {**_type(only), "type": [_type(only)["type"], "null"]}
    return {"type": "object", "additionalProperties": _type(inner[1])}


def text() -> str:
    """Return the description as it is committed."""
    return json.dumps(describe(), indent=1) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("openapi.json").write_text(text(), encoding="utf-8")
