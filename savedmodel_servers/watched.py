"""A client whose server's death is noticed at the call that it happened in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from .client import BadAnswer, Client, ServingError, Timeout, Unreachable

Judge = Callable[[str, ServingError], None]


def watched(client: Client, begin: Callable[[], None], judge: Judge) -> Client:
    """``client``, which tells ``begin`` before every call, and ``judge`` of every call that an
    ended server would explain.

    ``judge(method, error)`` raises what is to be raised instead, or returns.
    """
    return cast(Client, _Watched(client, begin, judge))


class _Watched:
    def __init__(self, client: Client, begin: Callable[[], None], judge: Judge) -> None:
        self._client, self._begin, self._judge = client, begin, judge

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the client open: its owner closes it."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._client, name)
        if name == "close" or not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            self._begin()
            try:
                return value(*args, **options)
            except (Unreachable, BadAnswer, Timeout) as error:
                self._judge(name, error)
                raise

        return call
