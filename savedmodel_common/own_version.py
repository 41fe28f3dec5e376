"""The version of this project that is installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from packaging.version import Version


def tool_version() -> Version | None:
    """Return the installed version of this project; None in a checkout that is not installed."""
    try:
        return Version(version("savedmodel-compat"))
    except PackageNotFoundError:
        return None
