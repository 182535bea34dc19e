"""Where the server is, and with which token it is asked."""

from __future__ import annotations

import os
from typing import Optional

from .errors import Invalid


def find_url(url: Optional[str]) -> str:
    """The URL that was given, or that of FERRY_BROKER."""
    found = url or os.environ.get("FERRY_BROKER", "")
    if not found:
        raise Invalid("no server is given", hint="name its URL, or set FERRY_BROKER to ferry://host:7070")
    return found


def find_token(token: Optional[str], token_file: Optional[str]) -> str:
    """The token that was given, or that of a file, or that of FERRY_TOKEN."""
    if token is not None and token_file is not None:
        raise Invalid("a token and a file of a token are given", hint="use one of them")
    if token_file is not None:
        with open(token_file, encoding="utf-8") as file:
            token = file.read()
    found = (token if token is not None else os.environ.get("FERRY_TOKEN", "")).strip()
    if not found:
        raise Invalid("there is no token", hint="set FERRY_TOKEN, or make one with `ferry token create`")
    if not found.isascii() or not found.isprintable() or " " in found:
        raise Invalid("the token has characters that no token has", hint="give it as `ferry token create` printed it")
    return found
