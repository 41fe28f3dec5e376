"""The prefix of a function's nodes in a program that inlined the function.

TensorFlow's inliner, which converters use too, puts the names of the calls before the name of a
node: the node ``dense/MatMul`` of a function that the node ``call`` of another function calls is
``call/dense/MatMul``. A program may begin above or below the signature: all its names then have
more or fewer calls in front. That is the same for all functions, so it is found by a vote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Optional

from reference_eval.executor import Ran

CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_LEAST = 0.5  # more of the nodes of a function must be found under a prefix that no path predicts

Votes = Mapping[str, Counter[str]]  # function -> prefix -> how many of its nodes are found there


@dataclass(frozen=True)
class Shift:
    """How all names of a program differ from the paths of calls.

    Attributes:
      more: what the program puts in front.
      fewer: the number of calls that it leaves out at the front.
    """

    more: str = ""
    fewer: int = 0

    def of(self, path: Sequence[str]) -> Optional[str]:
        """Return the prefix for a path of calls; None if the program begins below it."""
        if len(path) < self.fewer:
            return None
        return self.more + "".join(f"{call}/" for call in path[self.fewer :])


def of_functions(
    there: Collection[str], named: Sequence[Ran], ran: Sequence[Ran]
) -> dict[str, str]:
    """Return the prefix of each function whose nodes the other program names.

    Args:
      there: the names in the other program, without ``:0``.
      named: the nodes that have one value.
      ran: all nodes of the call, in the order in which they ran.
    """
    paths, votes = _paths(ran), _votes(there, named)
    shift = _shift(paths, votes)
    counts = Counter(one.function for one in named)
    found = {}
    for function, listed in votes.items():
        exact = shift.of(paths[function]) if function in paths else None
        prefix = exact if exact is not None and listed[exact] else _elected(listed, f"{function}/")
        if prefix == exact or listed[prefix] > _LEAST * counts[function]:
            found[function] = prefix
    return found


def _paths(ran: Sequence[Ran]) -> dict[str, tuple[str, ...]]:
    """Return the calls that lead to each function, the outermost first.

    Bodies of loops and branches have no path, nor has what they call.
    """
    callers = {}
    functions = {one.function for one in ran}
    for one in ran:
        called = one.attributes.get("f") if one.op in CALLS else None
        name = getattr(called, "name", one.op)
        if name in functions:
            callers[name] = one
    found: dict[str, tuple[str, ...]] = {ran[-1].function: ()} if ran else {}
    for name, call in reversed(callers.items()):  # an outer call ends after the inner ones
        if call.function in found:
            found[name] = (*found[call.function], call.node)
    return found


def _votes(there: Collection[str], named: Sequence[Ran]) -> Votes:
    by_end: dict[str, list[str]] = {}
    for name in there:
        for prefix, end in _parted(name):
            by_end.setdefault(end, []).append(prefix)
    votes: dict[str, Counter[str]] = {}
    for one in named:
        votes.setdefault(one.function, Counter()).update(by_end.get(one.node, ()))
    return {function: found for function, found in votes.items() if found}


def _parted(name: str) -> Iterator[tuple[str, str]]:
    """Yield a name in two parts: ``("", "a/b/c")``, ``("a/", "b/c")``, ``("a/b/", "c")``."""
    parts = name.split("/")
    for start in range(len(parts)):
        prefix = "".join(f"{part}/" for part in parts[:start])
        yield prefix, "/".join(parts[start:])


def _shift(paths: Mapping[str, Sequence[str]], votes: Votes) -> Shift:
    """Return the shift under which most nodes are found."""
    found: Counter[Shift] = Counter()
    for function in paths.keys() & votes.keys():
        path = paths[function]
        for prefix, count in votes[function].items():
            whole = Shift().of(path) or ""
            if prefix.endswith(whole):
                found[Shift(more=prefix.removesuffix(whole))] += count
            for fewer in range(1, len(path) + 1):
                if prefix == Shift(fewer=fewer).of(path):
                    found[Shift(fewer=fewer)] += count
    return max(found, key=lambda one: (found[one], -len(one.more), -one.fewer), default=Shift())


def _elected(votes: Counter[str], preferred: str) -> str:
    """Return the prefix with most votes; of several, the function's name as SavedModels have it."""
    most = max(votes.values())
    return preferred if votes[preferred] == most else votes.most_common(1)[0][0]
