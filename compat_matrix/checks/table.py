"""The checks by name, in the order they are planned, and what each needs of a consumer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

# A request of this kind needs this capability of the consumer; None = everybody answers it.
CAPABILITY_OF_KIND = {"signature": None, "function": "functions"}


@dataclass(frozen=True)
class Check:
    """``needs``: the consumer must have one of these capabilities, if there are any. ``asks``: needs a request to answer.

    ``like``: a case that is limited to that check may be asked this one too.
    """

    name: str
    summary: str
    needs: tuple[str, ...] = ()
    asks: bool = False
    like: str = ""

    def among(self, names: Collection[str] | None) -> bool:
        """Whether a case limited to the checks ``names`` (None: not limited) is asked this one."""
        return names is None or self.name in names or self.like in names

    def not_applicable(self, capabilities: Collection[str], kinds: Collection[str]) -> str | None:
        """Why this check has nothing to ask, or None.

        ``kinds`` are the kinds of the artifact's requests (``signature``, ``function``), in any number.
        """
        if self.needs and not any(need in capabilities for need in self.needs):
            return f"the consumer cannot {' or '.join(self.needs)}"
        if self.asks and not any(answerable(kind, capabilities) for kind in kinds):
            return "no request this consumer can answer: " + (", ".join(sorted(set(kinds))) or "none recorded")
        return None


def answerable(kind: str, capabilities: Collection[str]) -> bool:
    """Whether a consumer with ``capabilities`` can be asked a request of ``kind``."""
    needed = CAPABILITY_OF_KIND[kind]
    return needed is None or needed in capabilities


def _table(*checks: Check) -> dict[str, Check]:
    return {check.name: check for check in checks}


CHECKS = _table(
    Check("load", "every MetaGraph that has requests loads; the artifact is what its provenance says"),
    Check("signatures", "the signatures the consumer shows are those of the SignatureDefs"),
    Check("values", "the answers are those the producer recorded", asks=True),
    Check("relocate", "the same answers from a copy of the directory after the original is gone", asks=True),
    Check(
        "reexport", "load, save, load: same answers, signatures, variables, assets; a second save is a fixed point", ("resave",)
    ),
    Check(
        "objects",
        "variables and functions are what the file and the original say; so are gradients",
        ("describe",),
        like="checkpoint",
    ),
    Check("checkpoint", "the consumer holds the values of the checkpoint, all that its signatures need", ("variables", "fetch")),
)
# Of a server: each is a cell of its own, so that what one transport cannot carry is known of that transport alone.
SERVE_CHECKS = _table(
    Check("serve", "the server makes it AVAILABLE; the metadata it shows are the SignatureDefs", like="load"),
    Check("serve_grpc", "Predict, Classify and Regress over gRPC answer as recorded", asks=True, like="values"),
    Check("serve_rest", "the same over REST, in columns and rows; both transports answer the same", asks=True, like="values"),
)
