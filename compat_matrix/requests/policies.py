"""How each command finds requests, has them answered and compares answers.

Every command names one of the policies below.

The rest is the same for all of them: which inputs are made up (`made_up`), which answers count
(`recorder`), and the words for a signature without an answer (`questions.Question.why`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from savedmodel_common.compare import EXACT, Tolerance

# Sizes of the unknown dimensions, the first and the others, in the order tried: most models take a
# batch of any size.
SIZES = ((2, 1), (1, 1), (1, 8), (4, 4), (1, 64), (1, 224))
RANKS = (1, 0)  # of a tensor whose rank is unknown, in the order tried


class OptionError(ValueError):
    """Raised for an option or a request without a meaning; the message says what is possible."""


class Allowed(NamedTuple):
    """The allowed difference of answers, with a reason."""

    rtol: float
    atol: float
    reason: str

    @property
    def bounds(self) -> Tolerance:
        """Without the reason."""
        return Tolerance(self.rtol, self.atol)


BIT_EXACT = Allowed(EXACT.rtol, EXACT.atol, "bit-exact")
# What a session fuses, and in which order it sums, differs from what is executed op by op, or by
# the exporter's own library.
ACROSS_LOADERS = Allowed(
    1e-5, 1e-6, "another loader fuses and orders floating point operations otherwise"
)
# Recorded with oneDNN off, served with it on, by another build; the most that one of 137 public
# models differed was 2e-4.
ACROSS_SERVERS = Allowed(
    1e-3, 5e-4, "a server computes with other kernels (oneDNN) than the recorder of the answers"
)
ACROSS_RELEASES = Allowed(1e-3, 5e-4, "another machine or release computes with other kernels")


@dataclass(frozen=True)
class Policy:
    """Where requests and answers come from, and how answers are compared."""

    tolerance: (
        Allowed  # how far answers may be apart, where neither the requests nor an option say so
    )
    answered_by: tuple[
        str, ...
    ] = ()  # consumers that are asked where no answer is recorded; the first that answers counts
    beside: bool = (
        True  # take the requests that lie beside the model (``io/io.json``), where none are given
    )
    # How many requests are made up for each signature without one, after the model's own warm-up
    # requests. None: one if there is no request at all, else none.
    make_up: int | None = None
    instead: bool = (
        False  # make requests up for a signature too, if none that is given for it is answered
    )
    # each request is asked of each of two loaded models so often: what is drawn may be the same
    # once
    rounds: int = 2
    # given requests without an answer, and those that end a process: the checks judge them
    keeps_unanswered: bool = False
    keeps_stateful: bool = True  # answers that depend on earlier requests
    survives: bool = True  # go on when a process dies
    limit: float = 300.0  # seconds for one step; somebody's model may be large


# `matrix run`, `grid`, `gate`: requests and answers are those of a producer.
RECORDED = Policy(BIT_EXACT)
# `check`, the exporters' pytest plug-in: loaders against each other.
LOADERS = Policy(
    ACROSS_LOADERS, ("tf2", "v1_session", "c_api", "reference"), keeps_unanswered=True, limit=60.0
)
# `migrate`: the old model through its own loader against the new one.
GENERATIONS = Policy(ACROSS_LOADERS, ("v1_session",), make_up=1, instead=True, survives=False)
# `contract write`, `contract check --answers`, `downgrade`: the loader that servers have, in
# another release.
RELEASES = Policy(ACROSS_RELEASES, ("c_api",))
# `check --servers-only`: loaders say what servers have to answer.
SERVERS = replace(LOADERS, tolerance=ACROSS_SERVERS)
# `serving upgrade`: clients ask in any order, as often as they like.
SWITCHED = Policy(ACROSS_SERVERS, ("c_api",), keeps_stateful=False)
