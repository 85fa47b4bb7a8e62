"""The description of a service that programs read, made from its endpoints and the structs that they take and answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from .endpoint import Endpoint
from .problem import MEDIA_TYPE, ProblemDocument

REFERENCE = "#/components/schemas/{name}"
OPENAPI = "3.1.0"
VERSION = "1"  # of what is described: it grows where a program that knew the former one would break
Schema = dict[str, Any]


def description(title: str, endpoints: Sequence[Endpoint]) -> Schema:
    """Return the OpenAPI document."""
    kinds = list(dict.fromkeys(_kinds(endpoints)))
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    known = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, Schema] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.template, {})[endpoint.method.lower()] = _operation(endpoint, known)
    return {
        "openapi": OPENAPI,
        "info": {"title": title, "version": VERSION},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }


def _kinds(endpoints: Sequence[Endpoint]) -> list[Any]:
    asked = [endpoint.takes for endpoint in endpoints if endpoint.takes is not None]
    answered = [kind for endpoint in endpoints for kind in endpoint.answers.values() if kind is not None]
    return [*asked, *answered, ProblemDocument]


def _operation(endpoint: Endpoint, known: dict[Any, Schema]) -> Schema:
    responses: Schema = {str(status): _answer(kind, endpoint, known) for status, kind in endpoint.answers.items()}
    responses["default"] = {"description": "Not done.", "content": {MEDIA_TYPE: {"schema": known[ProblemDocument]}}}
    operation: Schema = {"summary": endpoint.summary, "responses": responses}
    named = [_parameter(name, "path") for name in re.findall(r"{(\w+)}", endpoint.template)]
    if parameters := [*named, *(_parameter(name, "query") for name in endpoint.query)]:
        operation["parameters"] = parameters
    if endpoint.takes is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": known[endpoint.takes]}},
        }
    return operation


def _answer(kind: Any, endpoint: Endpoint, known: dict[Any, Schema]) -> Schema:
    if kind is None:
        return {"description": "Done."}
    return {"description": "The answer.", "content": {endpoint.media_type: {"schema": known[kind]}}}


def _parameter(name: str, where: str) -> Schema:
    return {"name": name, "in": where, "required": where == "path", "schema": {"type": "string"}}
