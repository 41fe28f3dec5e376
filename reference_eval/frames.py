"""Control flow of TF 1.x that is not rewritten to functions: Switch, Merge and the frames of loops.

The order of the nodes is not known before, so values travel: a node runs as soon as each of its
inputs has a value. A value in a loop has a place, e.g. ``(("outer", 2), ("inner", 0))`` is the
first iteration of a loop inside the third iteration of another one. `Enter` adds a part to the
place, `NextIteration` counts it on, and `Exit` removes it. The branch that is not taken receives
`DEAD` values: a node with one of them does not run and passes `DEAD` on.

This follows TensorFlow's executor (core/common_runtime/executor.cc and propagator_state.cc).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from reference_eval import sizes
from reference_eval.errors import EvaluationError, EvaluationLimitError
from reference_eval.plan import Plan, Step
from reference_eval.state import size_of

Place = tuple[tuple[str, int], ...]
Frame = tuple[Place, str]  # the place around a loop, and the name of the loop
DEAD = object()

_ENTER, _EXIT = ("Enter", "RefEnter"), ("Exit", "RefExit")
_NEXT, _MERGE = ("NextIteration", "RefNextIteration"), ("Merge", "RefMerge")
_SWITCH = ("Switch", "RefSwitch")
_TRIGGER = "ControlTrigger"  # runs also after dead nodes


@dataclass
class _Token:
    """A value on its way; `waiting` is the number of inputs that have not used it yet."""

    value: Any
    waiting: int


@dataclass
class _Pending:
    """The inputs of a node at one place that have arrived, by their number."""

    tokens: dict[int, _Token] = field(default_factory=dict)
    has_run: bool = False


@dataclass
class _Edges:
    """The edges of a function. The value ``^name`` only tells that a node ran.

    Attributes:
      users: value -> the nodes that take it, with the number of the input.
      sources: node -> the op behind each of its inputs, first the data, then the controls.
      enters: name of a loop -> the nodes that enter it.
    """

    users: dict[str, list[tuple[Step, int]]] = field(default_factory=dict)
    sources: dict[str, list[str]] = field(default_factory=dict)
    enters: dict[str, set[str]] = field(default_factory=dict)


def _edges_of(plan: Plan) -> _Edges:
    ops = {step.name: step.op for step in plan.steps}
    found = _Edges()
    for step in plan.steps:
        values = [*step.inputs, *[f"^{name}" for name in step.controls]]
        for number, value in enumerate(values):
            found.users.setdefault(value, []).append((step, number))
        sources = [value.lstrip("^").partition(":")[0] for value in values]
        found.sources[step.name] = [ops.get(source, "") for source in sources]
        if step.op in _ENTER:
            found.enters.setdefault(_loop_of(step), set()).add(step.name)
    return found


def _loop_of(enter: Step) -> str:
    name = enter.attributes.get("frame_name")
    if not isinstance(name, bytes):
        raise EvaluationError(f"node {enter.name!r} ({enter.op}) names no loop")
    return name.decode(errors="backslashreplace")  # bytes that differ have names that differ


class Frames:
    """One run of a function.

    Args:
      plan: the function.
      run_step: runs a node with its inputs and returns its results.
      check_live: is called with the bytes of the values on their way, and a node.
    """

    def __init__(
        self,
        plan: Plan,
        run_step: Callable[[Step, list[Any]], list[Any]],
        check_live: Callable[[int, Step], None],
    ) -> None:
        self._plan, self._run_step, self._check_live = plan, run_step, check_live
        self._edges = _edges_of(plan)
        self._pending: dict[tuple[str, Place], _Pending] = {}
        self._ready: deque[tuple[Step, Place, Optional[list[Any]]]] = deque()
        self._results: dict[str, Any] = {}
        self._live = 0
        # Of each loop that was entered:
        self._entered: dict[Frame, set[str]] = {}
        self._iterations: dict[Frame, int] = {}
        self._constants: dict[Frame, list[tuple[str, Any]]] = {}
        self._dead_exits: dict[Frame, dict[str, Step]] = {}

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the results of the function.

        Raises EvaluationError: a result is in a branch that was not taken, or the loops of the
        function are not those that TensorFlow writes.
        """
        for (name, _), value in zip(self._plan.arguments, arguments):
            self._send(name, (), value)
            self._send(f"^{name}", (), True)
        for step in self._plan.steps:
            if not self._edges.sources[step.name]:
                self._ready.append((step, (), []))
        while self._ready or self._left_untaken_loop():
            while self._ready:
                self._fire(*self._ready.popleft())
        for key in self._plan.results:
            if self._results.get(key, DEAD) is DEAD:
                raise EvaluationError(f"the result {key!r} is in a branch that was not taken")
        return [self._results[key] for key in self._plan.results]

    # Values
    # ----------------------------------------------------------------------------------------------

    def _send(self, key: str, place: Place, value: Any) -> None:
        """Give a value to the nodes that take it."""
        users = self._edges.users.get(key, ())
        if not place and key in self._plan.results:
            self._results[key] = value
        if users:
            token = _Token(value, len(users))
            self._live += size_of(value)
            for step, number in users:
                self._arrive(step, place, number, token)
            self._check_live(self._live, users[0][0])

    def _arrive(self, step: Step, place: Place, number: int, token: _Token) -> None:
        pending = self._pending.setdefault((step.name, place), _Pending())
        pending.tokens[number] = token
        if step.op in _MERGE:
            self._merge(step, place, pending)
        elif len(pending.tokens) == len(self._edges.sources[step.name]):
            given = [pending.tokens[number].value for number in sorted(pending.tokens)]
            self._forget(step, place)
            alive = all(value is not DEAD for value in given) or step.op == _TRIGGER
            self._ready.append((step, place, given[: len(step.inputs)] if alive else None))

    def _merge(self, step: Step, place: Place, pending: _Pending) -> None:
        """Run a Merge at its first value that is not dead, or if all are dead.

        The first iteration of a loop waits for the values from outside, any other one for those of
        the iteration before it.
        """
        sources = self._edges.sources[step.name]
        data = range(len(step.inputs))
        is_of_loop = any(sources[number] in _NEXT for number in data)
        is_later = is_of_loop and bool(place) and place[-1][1] > 0
        awaited = [number for number in data if (sources[number] in _NEXT) == is_later]
        controls = range(len(step.inputs), len(sources))
        tokens = pending.tokens
        given = {number: tokens[number].value for number in data if number in tokens}
        alive = [number for number, value in given.items() if value is not DEAD]
        is_complete = all(number in tokens for number in awaited)
        if not pending.has_run and all(number in tokens for number in controls):
            if any(tokens[number].value is DEAD for number in controls):
                alive, is_decided = [], True
            else:
                is_decided = bool(alive) or is_complete
            if is_decided:
                pending.has_run = True
                values = [given[number] if number in alive[:1] else None for number in data]
                self._ready.append((step, place, values if alive else None))
        if is_complete and pending.has_run:
            self._forget(step, place)

    def _forget(self, step: Step, place: Place) -> None:
        for token in self._pending.pop((step.name, place)).tokens.values():
            token.waiting -= 1
            if not token.waiting:
                self._live -= size_of(token.value)

    # Nodes
    # ----------------------------------------------------------------------------------------------

    def _fire(self, step: Step, place: Place, given: Optional[list[Any]]) -> None:
        """Run a node and send its results; None is a node with a dead input, which does not run."""
        if given is None:
            if step.op in _NEXT:
                return  # the loop ends here
            if step.op in _EXIT:  # dead in each iteration but the last one
                self._dead_exits.setdefault(self._frame(step, place), {})[step.name] = step
                return
            results = [DEAD for _ in step.outputs]
        else:
            results = self._run_step(step, given)
            if step.op in _SWITCH:
                taken = int(bool(given[1]))
                results[1 - taken] = DEAD
        self._deliver(step, place, results, DEAD if given is None else True)

    def _deliver(self, step: Step, place: Place, results: list[Any], ran: Any) -> None:
        """Send the results of a node to the place where they belong."""
        values = [*zip([key for key, _ in step.outputs], results), (f"^{step.name}", ran)]
        if step.op in _ENTER:
            self._enter(step, place, values)
            return
        if step.op in _EXIT:
            frame = self._frame(step, place)
            self._dead_exits.setdefault(frame, {}).pop(step.name, None)
            place = frame[0]
        elif step.op in _NEXT:
            place = self._next_place(step, place)
        for key, value in values:
            self._send(key, place, value)

    def _enter(self, step: Step, place: Place, values: list[tuple[str, Any]]) -> None:
        """Send a value into a loop: to its first iteration, or a constant to each of them."""
        if len(place) == sizes.DEPTH:
            reason = f"loops are more than {sizes.DEPTH} deep in each other"
            raise EvaluationLimitError(reason, limit="DEPTH")
        name = _loop_of(step)
        frame = (place, name)
        self._entered.setdefault(frame, set()).add(step.name)
        count = self._iterations.setdefault(frame, 1)
        if step.attributes.get("is_constant"):
            self._constants.setdefault(frame, []).extend(values)
        else:
            count = 1
        for iteration in range(count):
            for key, value in values:
                self._send(key, (*place, (name, iteration)), value)

    def _next_place(self, step: Step, place: Place) -> Place:
        """Return the next iteration, which receives the constants of the loop when it begins."""
        frame = self._frame(step, place)
        iteration = place[-1][1] + 1
        following = (*frame[0], (frame[1], iteration))
        if iteration == self._iterations[frame]:
            self._iterations[frame] += 1
            for key, value in self._constants.get(frame, ()):
                self._send(key, following, value)
        return following

    def _frame(self, step: Step, place: Place) -> Frame:
        if not place:
            raise EvaluationError(f"node {step.name!r} ({step.op}) is not in a loop")
        return place[:-1], place[-1][0]

    def _left_untaken_loop(self) -> bool:
        """Send the dead exits of one loop that ended without a value. Return whether there was one.

        It is in a branch that was not taken. Only a loop that received all its inputs has ended.
        """
        ended = [
            frame
            for frame, exits in self._dead_exits.items()
            if exits and self._entered[frame] == self._edges.enters[frame[1]]
        ]
        if not ended:
            return False
        innermost = max(ended, key=lambda frame: len(frame[0]))
        for step in self._dead_exits.pop(innermost).values():
            for key in [*[key for key, _ in step.outputs], f"^{step.name}"]:
                self._send(key, innermost[0], DEAD)
        return True
