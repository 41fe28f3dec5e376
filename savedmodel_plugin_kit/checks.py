"""The checks, in the order they run. Each is a function of an :class:`.exam.Exam`.

A check that does not apply gives the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from compat_matrix.cases import title_and_rest
from savedmodel_plugin_kit import answering, talking
from savedmodel_plugin_kit.exam import Exam


@dataclass(frozen=True)
class Check:
    """One check.

    ``rules``: the rules it covers; a mistake breaks the first one unless it names another.
    """

    name: str
    run: Callable[[Exam], None]
    rules: tuple[str, ...]

    @property
    def summary(self) -> str:
        return title_and_rest(self.run.__doc__ or "")[0]


CHECKS = (
    Check("hello", talking.hello, ("P-04", "P-01", "P-02", "P-03")),
    Check("other-protocol", talking.other_protocol, ("P-05",)),
    Check("unknown-op", talking.unknown_op, ("P-06",)),
    Check("missing-model", answering.missing_model, ("P-08",)),
    Check("wrong-tags", answering.wrong_tags, ("P-08", "P-15")),
    Check("signatures", answering.signatures, ("P-09",)),
    Check("half-plus-two", answering.half_plus_two, ("P-10", "P-11")),
    Check("signature-key", answering.signature_key, ("P-10",)),
    Check("no-state", answering.no_state, ("P-13",)),
    Check("wrong-records", answering.wrong_records, ("P-22",)),
    Check("many-models", answering.many_models, ("P-07",)),
    Check("close", answering.close, ("P-14",)),
    Check("wrong-signature", answering.wrong_signature, ("P-12",)),
    Check("wrong-inputs", answering.wrong_inputs, ("P-12",)),
    Check("dtypes", answering.dtypes, ("P-11",)),
    Check("large-messages", talking.large_messages, ("P-20",)),
    Check("many-requests", talking.many_requests, ("P-02", "P-13")),
    Check("untouched", answering.untouched, ("P-21",)),
    Check("functions", answering.functions, ("P-15",)),
    Check("threads", answering.threads, ("P-15",)),
    Check("variables", answering.variables, ("P-15",)),
    Check("fetch", answering.fetch, ("P-15",)),
    Check("resave", answering.resave, ("P-15",)),
    Check("understood", answering.understood, ("P-10",)),
    Check("quiet", talking.quiet, ("P-19", "P-02")),
    Check("bye", talking.bye, ("P-16",)),
    Check("end-of-channel", talking.end_of_channel, ("P-17",)),
    Check("sigterm", talking.sigterm, ("P-18",)),
)
