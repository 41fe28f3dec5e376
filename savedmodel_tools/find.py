"""Find the models that arguments name: paths, trees of folders, lists in files, URLs (GOAL-07).

    with find(["exports", "gs://bucket/models", "@more.txt"]) as found:
        for model in found.models:
            with model.local() as path:
                ...

Finding reads names only; what they hold is read when asked for. The order is that of the arguments,
within a tree that of the names, so two runs over one zoo agree. Nothing is left out in silence:
what a search did not enter is in ``skipped``.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from reference_impl.format.names import FORMATS
from savedmodel_tools.meant import model_around, near
from savedmodel_tools.place import (
    Entry,
    Local,
    Place,
    Unusable,
)

MEMBERS = (
    "variables",
    "assets",
    "assets.extra",
    "debug",
)  # folders of a model, which are not searched for models
_UNFINISHED = (
    "holds variables/variables.index but no saved_model file: an export that was not finished, or"
    " lost its graph"
)
LINK, UNLISTED, UNFINISHED, ODD = (
    "link",
    "unlisted",
    "unfinished",
    "odd",
)  # kinds of what is skipped
MAX_DIRECTORIES = 10**6  # looked into below one argument
MAX_LIST_BYTES = 2**26

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::|://)")


class Skipped(NamedTuple):
    """A place that a search did not enter, and the reason."""

    name: str
    reason: str
    kind: str = ""  # LINK, UNLISTED, UNFINISHED or ODD


class Model(NamedTuple):
    """One SavedModel."""

    name: str  # what a user would type for it: a path as the argument gave it, or a URL
    # Its path below the argument it was found in, with slashes; of an argument that is itself a
    # model its last name.
    relative: str
    file: str  # the saved_model.* file that loaders take
    place: Place  # where it is

    @property
    def is_remote(self) -> bool:
        """Return whether :meth:`local` has to copy it first."""
        return self.place.remote

    def local(self) -> contextlib.AbstractContextManager[Path]:
        """Open a context with its directory, or its file if that was named.

        A remote model is copied for as long.

        Raises OSError: it cannot be copied: the other side fails, a name leads out, it is larger
        than the limits of `savedmodel_tools.remote` or than the disk has room for.
        """
        return self.place.local()


class Found(NamedTuple):
    """The models that the arguments name."""

    models: list[Model]
    skipped: list[Skipped]


def find(arguments: Iterable[str], *, follow_links: bool = False) -> Found:
    """Return the models that ``arguments`` name, each once, in a deterministic order.

    Args:
      arguments: directories of models, saved_model.* files, trees of folders, URLs that fsspec
        knows, and ``@file``, a list with one such argument on each line (``@-`` is standard
        input). Blank lines and lines that begin with ``#`` are skipped.
      follow_links: enter symbolic links to directories outside of the tree; without it they are
        named in ``skipped``.

    Raises:
      Unusable: an argument names nothing, a list cannot be read, or no model is there at all,
        unless something other than a link was skipped.
    """
    found, known = Found([], []), set[str]()
    for argument in _expanded(arguments):
        place = place_of(argument, follow_links)
        kind = place.kind()
        if kind == "":
            raise Unusable(
                f"{argument or repr(argument)}: no such file or directory"
                f"{'' if place.remote else near(argument)}"
            )
        if kind == "file":
            _add_file(place, found, known)
        elif not _search(place, found, known):
            raise Unusable(
                f"{argument}: no SavedModel is there ({', '.join(FORMATS)} in this directory or"
                f" below it){'' if place.remote else model_around(argument)}"
            )
    if not found.models and not found.skipped:
        raise Unusable("no model is named: give a SavedModel, a folder of them, a URL or @LIST")
    if not found.models and all(item.kind == LINK for item in found.skipped):
        one = found.skipped[0]
        more = f", and {len(found.skipped) - 1} more like it" if len(found.skipped) > 1 else ""
        raise Unusable(f"no SavedModel is there but behind links: {one.name} is {one.reason}{more}")
    return found


def place_of(argument: str, follow_links: bool = False) -> Place:
    """Return the place that an argument names.

    Raises Unusable for a URL that cannot be read here.
    """
    if not _URL.match(argument) or os.path.lexists(argument):
        return Local(argument, follow_links)
    if argument.lower().startswith("file://"):
        import urllib.parse

        # costs as much as the rest of a small command, and is seldom asked for
        import urllib.request

        return Local(
            urllib.request.url2pathname(urllib.parse.urlsplit(argument).path), follow_links
        )
    from savedmodel_tools.remote import remote

    return remote(argument)


def _expanded(arguments: Iterable[str]) -> Iterator[str]:
    for argument in arguments:
        if argument.startswith("@"):
            yield from _lines(argument[1:])
        else:
            yield argument


def _lines(name: str) -> Iterator[str]:
    """Yield the arguments in a list file. Raises Unusable."""
    try:
        with open(0 if name == "-" else name, encoding="utf-8", closefd=name != "-") as file:
            text = file.read(MAX_LIST_BYTES + 1)
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise Unusable(f"{name}: a list of models cannot be read: {error}") from error
    if len(text) > MAX_LIST_BYTES:
        raise Unusable(f"{name}: a list of more than {MAX_LIST_BYTES} characters")
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            yield line.strip()


def _add_file(place: Place, found: Found, known: set[str]) -> None:
    last = re.split(r"[\\/]", place.name)[-1]
    if not last.endswith(tuple(os.path.splitext(name)[1] for name in FORMATS)):  # noqa: PTH122
        raise Unusable(
            f"{place.name}: neither a directory nor a .pb, .pbtxt or .cpb file (a list of models is"
            f" @{place.name}){'' if place.remote else model_around(place.name)}"
        )
    if place.identity() not in known:
        known.add(place.identity())
        found.models.append(Model(place.name, last, last, place))


def _search(start: Place, found: Found, known: set[str]) -> bool:
    """Add all models at and below a directory.

    False when there is none, also none that an earlier argument brought.
    """
    pending: list[tuple[Place, str]] = [(start, "")]
    looked, before = 0, len(found.models) + len(found.skipped)
    repeated = False
    while pending:
        place, relative = pending.pop()
        identity = place.identity()
        if identity in known:
            repeated = True
            continue
        known.add(identity)
        looked += 1
        if looked > MAX_DIRECTORIES:
            reason = f"more than {MAX_DIRECTORIES} directories; not looked into: {place.name}, …"
            found.skipped.append(Skipped(start.name, reason, UNLISTED))
            break
        try:
            entries = place.entries()
        except OSError as error:
            found.skipped.append(
                Skipped(place.name, f"cannot be listed: {error.strerror or error}", UNLISTED)
            )
            continue
        is_model = _look(place, relative, entries, found)
        following = []
        for entry in entries:
            inner = f"{relative}/{entry.name}".lstrip("/")
            if entry.kind == "directory" and not (is_model and entry.name in MEMBERS):
                following.append((place.below(entry.name), inner))
            elif entry.kind == "link" and not (is_model and entry.name in MEMBERS):
                reason = (
                    f"a symbolic link out of the tree, to {entry.target}; not followed"
                    " (--follow-links follows it)"
                )
                found.skipped.append(Skipped(place.below(entry.name).name, reason, LINK))
        pending.extend(reversed(following))
    return repeated or len(found.models) + len(found.skipped) > before


def _look(place: Place, relative: str, entries: Sequence[Entry], found: Found) -> bool:
    """Add the model that a directory is, if it is one."""
    kinds = {entry.name: entry.kind for entry in entries}
    file = next((name for name in FORMATS if kinds.get(name) == "file"), None)
    if file is not None:
        last = relative or re.split(r"[\\/]", place.identity().rstrip("/\\"))[-1]
        found.models.append(Model(place.name, last, file, place))
        return True
    odd = next((name for name in FORMATS if name in kinds), None)
    if odd is not None:
        found.skipped.append(Skipped(place.name, f"its {odd} is not a regular file", ODD))
    elif kinds.get("variables") == "directory" and place.holds("variables/variables.index"):
        found.skipped.append(Skipped(place.name, _UNFINISHED, UNFINISHED))
        return True
    return False
