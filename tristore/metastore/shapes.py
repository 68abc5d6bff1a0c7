"""The bodies of requests, for the OpenAPI document; the routes check more than it can say."""

from typing import Any

from tristore.metastore.content import MAX_OWNER, MAX_TAG, MAX_TAGS
from tristore.metastore.names import MAX_KEY

Schema = dict[str, Any]

_TEXTS: Schema = {
    "type": "array",
    "maxItems": MAX_TAGS,
    "items": {"type": "string", "minLength": 1, "maxLength": MAX_TAG},
}
_OWNER: Schema = {"type": ["string", "null"], "minLength": 1, "maxLength": MAX_OWNER}
_CONTENT: Schema = {
    "metadata": {"type": "object", "additionalProperties": True},
    "tags": _TEXTS,
    "owner": _OWNER,
}
_ADDRESS: Schema = {
    "namespace": {"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,62}$"},
    "key": {"type": "string", "minLength": 1, "maxLength": MAX_KEY},
}
_TAGS_PATCH: Schema = {"add": _TEXTS, "remove": _TEXTS, "set": _TEXTS}
_IF_MATCH: Schema = {"type": ["integer", "string"], "description": "The version it must have."}
_PATHS: Schema = {"type": "array", "items": {"type": "string"}}


def _object(properties: Schema, *required: str) -> Schema:
    found: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": list(required)} if required else found


def _body(schema: Schema) -> Schema:
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


NEW_RECORD = _body(_object({**_ADDRESS, **_CONTENT}, "namespace", "key"))
WHOLE_RECORD = _body(_object(_CONTENT))
PATCH = _body(_object({**_CONTENT, "tags": _object(_TAGS_PATCH)}))
VERSION = _body(_object({"version": {"type": "integer", "minimum": 1}}, "version"))
_UPSERT = _object(
    {"op": {"const": "upsert"}, **_ADDRESS, **_CONTENT, "ifMatch": _IF_MATCH},
    *("op", "namespace", "key"),
)
_DELETE = _object(
    {"op": {"const": "delete"}, **_ADDRESS, "ifMatch": _IF_MATCH}, "op", "namespace", "key"
)
BULK = _body(
    _object(
        {
            "mode": {"enum": ["atomic", "perItem"], "default": "atomic"},
            "items": {"type": "array", "minItems": 1, "items": {"oneOf": [_UPSERT, _DELETE]}},
        },
        "items",
    )
)
RULES = _body(
    _object(
        {
            "schema": {"type": ["object", "null"], "additionalProperties": True},
            "allowedTags": {**_TEXTS, "type": ["array", "null"]},
            "requireOwner": {"type": "boolean", "default": False},
            "keyPattern": {"type": ["string", "null"]},
            "indexes": _PATHS,
            "textFields": _PATHS,
        }
    )
)
