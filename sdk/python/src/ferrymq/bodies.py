"""Bodies as the server shows them: JSON, text or base64."""

from __future__ import annotations

import base64
import json
from typing import Any, Mapping


def to_bytes(data: Mapping[str, Any]) -> bytes:
    """The body as bytes."""
    if "json" in data:
        return json.dumps(data["json"], ensure_ascii=False, separators=(",", ":")).encode()
    if "body" in data:
        return str(data["body"]).encode()
    return base64.b64decode(data.get("body_base64", ""))


def to_value(data: Mapping[str, Any]) -> Any:
    """The body as a value: what JSON says if it is JSON, otherwise the bytes."""
    if "json" in data:
        return data["json"]
    body = to_bytes(data)
    base = str(data.get("content_type", "")).split(";")[0]
    if base == "application/json" or base.endswith("+json"):
        try:
            return json.loads(body)
        except ValueError:  # it only says that it is JSON
            return body
    return body
