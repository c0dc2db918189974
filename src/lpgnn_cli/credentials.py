"""Names and passwords in the addresses of stores: kept in the environment, and nowhere else.

`http://ann:secret@host` becomes `http://host` before anything is stored, shown or put on a command
line. The whole address stays in $MLFLOW_TRACKING_URI of this process and of those it starts; a run
that is resumed takes it from there again, if it is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

TRACKING_URI = "MLFLOW_TRACKING_URI"
_USER, _PASSWORD = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"
_WEB = ("http://", "https://")
# What stands between `://` and the last @ before the path, and parameters that tell by their names.
_OWNER = re.compile(r"(?P<scheme>[A-Za-z][\w+.-]*://)(?P<owner>[^/\s'\"?#]*)@")
_PARAMETER = re.compile(
    r"(?P<name>[?&](?:password|passwd|pwd|token|secret|api_?key|access_key)=)[^&\s'\"#]*",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://[^\s'\"]+")


def redact(text: str) -> str:
    """Text as it may be stored and shown."""
    return _PARAMETER.sub(r"\g<name>", _OWNER.sub(_without_owner, text))


def keep(uri: str) -> str:
    """The address as it may be stored and shown; the whole one is kept in the environment."""
    if redact(uri) != uri:
        os.environ[TRACKING_URI] = uri
    return redact(uri)


def keep_in_words(words: Iterable[str]) -> list[str]:
    """The words of a command line, without what only this process is to know."""
    return [_ADDRESS.sub(lambda found: keep(found[0]), word) for word in words]


def restore(uri: str) -> str:
    """The address to connect to; MLflow takes what a web server asks for from the environment."""
    whole = os.environ.get(TRACKING_URI, "")
    if redact(whole) != uri:
        return uri
    if not uri.startswith(_WEB):
        return whole
    parts = urlsplit(whole)
    if parts.username:
        os.environ[_USER] = unquote(parts.username)
        os.environ[_PASSWORD] = unquote(parts.password or "")
    return uri


def _without_owner(found: re.Match[str]) -> str:
    """A user of a database without a password is no secret."""
    scheme, owner = found["scheme"], found["owner"]
    if scheme in _WEB or ":" in owner:
        return scheme
    return f"{scheme}{owner}@"
