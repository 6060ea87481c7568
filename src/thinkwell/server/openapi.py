"""The HTTP routes as an OpenAPI 3.1 document, written by hand. Pure.

For people who write clients, and for tools that throw strange requests at a server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thinkwell import __version__
from thinkwell.server.routing import split_path

_Json = dict[str, Any]

_PART: _Json = {
    "description": "A part as the AI SDK defines it; of other kinds, whatever they hold.",
    "type": "object",
    "required": ["type"],
    "properties": {"type": {"type": "string"}},
}
_MESSAGE: _Json = {
    "type": "object",
    "required": ["id", "role", "parts"],
    "properties": {
        "id": {"type": "string", "minLength": 1},
        "role": {"enum": ["user", "assistant", "system"]},
        "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Part"}},
        "metadata": {"type": "object"},
    },
}
_MESSAGES: _Json = {"type": "array", "items": {"$ref": "#/components/schemas/Message"}}
_CHAT: _Json = {
    "type": "object",
    "required": ["messages"],
    "properties": {
        "id": {"description": "The chat's id in the client; any."},
        "messages": _MESSAGES,
        "trigger": {"description": "`regenerate-message` answers the last message anew."},
        "messageId": {"description": "What the client regenerates or edits; not needed."},
        "clientTools": {"description": "A list of tools that the client runs."},
    },
}
_RUN: _Json = {
    "type": "object",
    "required": ["input"],
    "additionalProperties": False,
    "properties": {
        "input": {
            "oneOf": [
                {"type": "string", "minLength": 1},
                {"$ref": "#/components/schemas/Message"},
                {**_MESSAGES, "minItems": 1},
            ]
        },
        "metadata": {"type": ["object", "null"]},
        "idempotencyKey": {"type": ["string", "null"], "minLength": 1, "maxLength": 255},
        "wait": {"type": "boolean", "default": True},
    },
}
_TURN: _Json = {
    "type": "object",
    "required": ["requestId", "status"],
    "properties": {
        "requestId": {"type": "string"},
        "status": {"enum": ["accepted", "running", "completed", "error", "aborted", "skipped"]},
        "accepted": {"type": "boolean"},
        "text": {"type": "string"},
        "message": {"oneOf": [{"$ref": "#/components/schemas/Message"}, {"type": "null"}]},
        "usage": {"type": ["object", "null"]},
        "stopReason": {"type": ["string", "null"]},
        "error": {"type": ["string", "null"]},
        "output": {},
    },
}
_ERROR: _Json = {
    "type": "object",
    "required": ["error"],
    "properties": {"error": {"type": "string"}},
}
_CONVERSATIONS: _Json = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "title", "updatedAt"],
        "properties": {
            "name": {"type": "string"},
            "title": {"type": "string"},
            "updatedAt": {"type": "number"},
        },
    },
}


def describe(agents: Sequence[str], prefix: str, root: str) -> _Json:
    """The document of one app: its agent classes, their prefix, and where it is mounted."""
    agent = "/".join(["", *split_path(prefix), "{class}", "{name}"])
    return {
        "openapi": "3.1.0",
        "info": {"title": "Thinkwell", "version": __version__},
        "servers": [{"url": root or "/"}],
        "paths": {**_app_paths(agents), **_agent_paths(agent)},
        "components": {
            "schemas": {"Message": _MESSAGE, "Part": _PART, "Turn": _TURN, "Error": _ERROR},
            "parameters": {
                "class": _path_parameter("class", {"enum": list(agents)}),
                "name": _path_parameter("name", {"type": "string", "minLength": 1}),
            },
        },
    }


def _app_paths(agents: Sequence[str]) -> _Json:
    agent: _Json = {"name": "agent", "in": "query", "schema": {"enum": list(agents)}}
    anything: _Json = {"type": "object"}
    return {
        "/healthz": {"get": _operation("Whether the server lives", {200: _json(anything)})},
        "/readyz": {
            "get": _operation(
                "Whether the server accepts work", {200: _json(anything), 503: _json(anything)}
            )
        },
        "/_thinkwell/settings": {
            "get": _operation("Which agents there are", {200: _json(anything)})
        },
        "/_thinkwell/conversations": {
            "get": {
                **_operation(
                    "The agents of a class that were talked to, the latest first",
                    {200: _json(_CONVERSATIONS), 400: _json(_ERROR)},
                ),
                "parameters": [agent],
            }
        },
    }


def _agent_paths(agent: str) -> _Json:
    stream: _Json = {"description": "Chunks", "content": {"text/event-stream": {}}}
    turn, error = _json({"$ref": "#/components/schemas/Turn"}), _json(_ERROR)
    nothing: _Json = {"description": "Nothing to say"}
    return {
        f"{agent}/get-messages": {
            **_get("The stored messages", {200: _json(_MESSAGES)}),
            **_post("The same", None, {200: _json(_MESSAGES)}),
        },
        f"{agent}/run": _post(
            "Run a turn and wait for its result, or with `wait: false` only accept it",
            _RUN,
            {200: turn, 202: turn, **dict.fromkeys((400, 403, 409, 413, 415, 429, 503), error)},
        ),
        f"{agent}/run/{{requestId}}": _get(
            "How a turn stands", {200: turn, 404: error}, parameter="requestId"
        ),
        f"{agent}/chat": _post(
            "Send a message; the answer is a UI message stream",
            _CHAT,
            {200: stream, **dict.fromkeys((400, 409, 413, 415), _text())},
        ),
        f"{agent}/chat/stop": _post("Stop the turn that runs", None, {204: nothing}),
        f"{agent}/chat/{{chatId}}/stream": _get(
            "Join the turn that runs", {200: stream, 204: nothing}, parameter="chatId"
        ),
    }


def _get(summary: str, responses: dict[int, _Json], parameter: str | None = None) -> _Json:
    more = [] if parameter is None else [_path_parameter(parameter, {"type": "string"})]
    operation = {**_operation(summary, _with_door(responses)), "parameters": [*_ADDRESS, *more]}
    return {"get": operation}


def _post(summary: str, body: _Json | None, responses: dict[int, _Json]) -> _Json:
    operation = {**_operation(summary, _with_door(responses)), "parameters": [*_ADDRESS]}
    if body is not None:
        content = {"application/json": {"schema": body}}
        operation["requestBody"] = {"required": True, "content": content}
    return {"post": operation}


_ADDRESS: list[_Json] = [
    {"$ref": "#/components/parameters/class"},
    {"$ref": "#/components/parameters/name"},
]


def _with_door(responses: dict[int, _Json]) -> dict[int, _Json]:
    """What can happen before the agent is asked: always in plain words."""
    door = dict.fromkeys((400, 401, 403, 408, 413, 414, 429, 503), _text())
    said = {code: responses.get(code, _text()) for code in door}
    both = {
        code: {**answer, "content": {**answer.get("content", {}), **_text()["content"]}}
        for code, answer in said.items()
    }
    return {**responses, **both}


def _operation(summary: str, responses: dict[int, _Json]) -> _Json:
    return {"summary": summary, "responses": {str(code): said for code, said in responses.items()}}


def _json(schema: _Json) -> _Json:
    return {"description": "JSON", "content": {"application/json": {"schema": schema}}}


def _text() -> _Json:
    return {
        "description": "What is wrong",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }


def _path_parameter(name: str, schema: _Json) -> _Json:
    return {"name": name, "in": "path", "required": True, "schema": schema}
