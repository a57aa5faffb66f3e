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
from makeway_local_world.daemon.bodies import (
    BookingBody,
    DrainBody,
    EventsQuery,
    HistoryQuery,
    LastQuery,
    OrderBody,
    PageBody,
    QueueQuery,
    ReloadBody,
    RequestQuery,
    WaitQuery,
)
from makeway_local_world.limits import ABOUT, LIMIT
from makeway_local_world.requests import Request

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}
_OBJECT = {"type": "object"}
_QUERIES: Mapping[str, type[Any]] = {
    "/v1/last": LastQuery,
    "/v1/jobs": QueueQuery,
    "/v1/jobs/{id}/request": RequestQuery,
    "/v1/jobs/{id}/wait": WaitQuery,
    "/v1/events": EventsQuery,
    "/v1/history": HistoryQuery,
}
_BODIES: Mapping[str, type[Any]] = {
    "/v1/jobs": Request,
    "/v1/victims": Request,
    "/v1/commands": OrderBody,
    "/v1/bookings": BookingBody,
    "/v1/drain": DrainBody,
    "/v1/reload": ReloadBody,
    "/v1/web": PageBody,
}
_STATUSES = {
    "400": "wrong request",
    "403": "not allowed",
    "404": "no such job",
    "409": "refused, with the reason",
    "413": "too large",
    "429": "too many requests of one user: ask again after Retry-After seconds",
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
        "components": {
            "schemas": {cls.__name__: _schema(cls) for cls in dict.fromkeys(_BODIES.values())}
            | {"Error": _ERROR}
        },
    }


_ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}


def _operation(method: str, path: str, handler: Any) -> dict[str, Any]:
    summary = (handler.__doc__ or "").strip().partition("\n")[0]
    parameters = [
        {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
        for _ in re.findall(r"\{id\}", path)
    ]
    if method == "GET" and path in _QUERIES:
        parameters += [
            {"name": name, "in": "query", "schema": schema, "description": schema.pop("description")}
            for name, schema in _schema(_QUERIES[path])["properties"].items()
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
        found["requestBody"] = {
            "content": {
                "application/json": {"schema": {"$ref": f"#/components/schemas/{_BODIES[path].__name__}"}}
            }
        }
    return found


def _schema(cls: type[Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _field(hints[field.name], field) for field in attrs.fields(cls)},
    }


def _field(hint: Any, field: Any) -> dict[str, Any]:
    limit, about = field.metadata[LIMIT], field.metadata[ABOUT]
    found = _joined(_type(hint), {} if limit is None else limit.schema())
    return {**found, "description": about} if about else found


def _joined(first: dict[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Join what the type says of a field and what its limit says."""
    joined = dict(first)
    for key, value in more.items():
        before = joined.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            joined[key] = _joined(before, value)
        else:
            joined[key] = value
    return joined


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
