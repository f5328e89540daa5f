"""JSON values as Python has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

#: A JSON object as it came from the server.
Object: TypeAlias = Mapping[str, Any]


def without_none(**members: Any) -> dict[str, Any]:
    """The members that are set."""
    return {name: value for name, value in members.items() if value is not None}
