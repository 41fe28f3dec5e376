"""How far answers may be apart where nobody says so: one policy for each kind of reader, and why."""

from __future__ import annotations

from typing import NamedTuple

from compat_matrix.requests.compare import Tolerance


class Allowed(NamedTuple):
    """How far answers may be apart, and why."""

    rtol: float
    atol: float
    reason: str

    @property
    def bounds(self) -> Tolerance:
        """Without the reason."""
        return Tolerance(self.rtol, self.atol)


# What a session fuses, and in which order it sums, differs from what is executed op by op, or by the exporter's own library.
ACROSS_LOADERS = Allowed(1e-5, 1e-6, "another loader fuses and orders floating point operations otherwise")
# Recorded with oneDNN off, served with it on, by another build; the most that one of 137 public models differed was 2e-4.
ACROSS_SERVERS = Allowed(1e-3, 5e-4, "a server computes with other kernels (oneDNN) than what recorded the answers")
