"""The rules of the protocol by their ids. docs/exporters/protocol.md has the same sentences, which
a test compares.
"""

from __future__ import annotations

from pathlib import Path

PAGE = "docs/exporters/protocol.md"
_FILE = Path(__file__).resolve().parents[1] / PAGE

RULES: dict[str, str] = {
    "P-01": (
        "Replies go to the second descriptor of SAVEDMODEL_COMPAT_FD: one JSON object a line,"
        " UTF-8, and nothing else."
    ),
    "P-02": (
        "A reply repeats the id of its request, the number it was; there is one reply to each"
        " request, none without."
    ),
    "P-03": (
        "status is ok, error, rejected or unsupported; every one but ok comes with error_class and"
        " a message that says why."
    ),
    "P-04": (
        "hello names the worker, the protocol, its versions, its libraries and its capabilities."
    ),
    "P-05": (
        "A hello of another protocol is answered with unsupported; the next hello is a new chance."
    ),
    "P-06": (
        "An op that the worker does not know is unsupported; members of a request that it does not"
        " know are ignored."
    ),
    "P-07": (
        "load gives a handle, an integer that no other loaded model has; several models are loaded"
        " at a time."
    ),
    "P-08": (
        "A model that is missing, damaged or not understood is error or rejected, never ok; the"
        " worker continues."
    ),
    "P-09": (
        "signatures describes the SignatureDefs of the model; what the worker cannot see it leaves"
        " out."
    ),
    "P-10": (
        "call answers the signature that is asked; each output is written under the key that the"
        " SignatureDef gives it."
    ),
    "P-11": "A tensor keeps its dtype, its shape and every bit, in a file as section Tensors says.",
    "P-12": (
        "A call that does not fit the signature (its key, a missing or further input, a dtype) is"
        " an error, never an answer."
    ),
    "P-13": "An answer depends on the model and the request alone, not on earlier requests.",
    "P-14": "close frees a model; a handle that is closed, or was never given, is an error.",
    "P-15": (
        "Everything that the capabilities name works; an op that needs another capability is"
        " unsupported."
    ),
    "P-16": "bye is answered with ok; then the process ends.",
    "P-17": "When the channel is closed the process ends, whatever it is busy with.",
    "P-18": "SIGTERM ends the process.",
    "P-19": "stdout and stderr are for people: nothing of the protocol, and no flood.",
    "P-20": (
        "A request line may be 64 MiB long, and a tensor file may be large too. A reply line is at"
        " most 64 MiB."
    ),
    "P-21": "The worker writes the file that the request names, and nothing into the model.",
    "P-22": "An answer is computed: a file that lies in io_dir, or beside the model, is not one.",
}


def where(rule: str) -> str:
    """Return where a rule is documented: page and line in a checkout, else page and id."""
    if _FILE.is_file():
        for number, line in enumerate(_FILE.read_text(encoding="utf-8").splitlines(), start=1):
            if f"**{rule}**" in line:
                return f"{PAGE}:{number}"
    return f"{PAGE}#{rule.lower()}"
