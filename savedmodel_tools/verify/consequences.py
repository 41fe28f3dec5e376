"""The consequences of findings: which loaders they stop, which parts of a MetaGraph, since which
release.

`verify` takes the severity of a finding from this list, and `compat` takes from it which parts a
release cannot load or call. So the two cannot disagree. A consequence is *proved* when every
release from ``since`` on must fail. If it is not proved, the part may fail, and `compat` makes no
prediction.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from savedmodel_tools.verify.severities import Severity

LOAD = "load"


class Loader(str, enum.Enum):
    """The loaders that `compat` tells apart (:mod:`savedmodel_tools.compat` describes them)."""

    SESSION = "session"
    CPP = "c++"
    SERVERS = "servers"
    OBJECTS = "objects"


SESSION, CPP, SERVERS, OBJECTS = Loader.SESSION, Loader.CPP, Loader.SERVERS, Loader.OBJECTS
_NATIVE = (CPP, SERVERS)
_SESSIONS = (SESSION, *_NATIVE)
_ALL = (*_SESSIONS, OBJECTS)


class Form(enum.Enum):
    """How ``tf.saved_model.load`` treats the MetaGraph."""

    CUT = "cut"  # it cuts functions out of the main graph
    REBUILT = "rebuilt"  # it rebuilds the object graph, and does not look at the main graph


CUT, REBUILT = (Form.CUT,), (Form.REBUILT,)
_ANY = (*CUT, *REBUILT)


class Body(enum.Enum):
    """Where a defect is."""

    MAIN = "main"
    FUNCTION = "function"


_MAIN, _FUNCTION = (Body.MAIN,), (Body.FUNCTION,)
_ANYWHERE = (*_MAIN, *_FUNCTION)


class Consequence(NamedTuple):
    """A consequence of the faults of a rule.

    Attributes:
      loaders: which loaders fail.
      proved: whether they must fail; otherwise they may.
      calls: only calls of the parts that the fault names fail. Otherwise loading fails, and with it
        every part.
      since: the first release that was seen to fail; "" for what fails in every release.
      forms: the MetaGraphs for which this holds.
      bodies: whether it holds for faults in the main graph, or in functions.
    """

    loaders: tuple[Loader, ...]
    proved: bool = True
    calls: bool = False
    since: str = ""
    forms: tuple[Form, ...] = _ANY
    bodies: tuple[Body, ...] = _ANYWHERE


class Stop(NamedTuple):
    """One part of a MetaGraph that one loader cannot use because of a finding.

    ``part`` is ``load`` for all parts.
    """

    loader: Loader
    part: str
    proved: bool
    since: str


Consequences = tuple[Consequence, ...]
# The oldest release that was seen to refuse these models. Older ones may be less strict.
_SEEN = "2.12"

NONE: Consequences = ()
MAY_FAIL: Consequences = (Consequence(_ALL, proved=False),)
SESSION_CALL_MAY_FAIL: Consequences = (Consequence(_SESSIONS, proved=False, calls=True),)
CALL_MAY_FAIL: Consequences = (Consequence(_ALL, proved=False, calls=True),)
OBJECTS_MAY_FAIL: Consequences = (Consequence((OBJECTS,), proved=False),)
CUT_FAILS: Consequences = (Consequence((OBJECTS,), forms=CUT),)
CUT_MAY_FAIL: Consequences = (Consequence((OBJECTS,), proved=False, forms=CUT),)
# The tensors of a signature matter to sessions when it is called; tf.saved_model.load cuts all
# signatures out when it loads.
SIGNATURE_FAILS: Consequences = (Consequence(_SESSIONS, calls=True), *CUT_FAILS)
# The same for a placeholder that may not run, and for one that the initialiser needs.
UNSURE_SIGNATURE: Consequences = (Consequence(_SESSIONS, proved=False, calls=True), *CUT_FAILS)
UNSURE_LOAD: Consequences = (Consequence(_SESSIONS, proved=False), *CUT_FAILS)
# Python may get by: it converts inputs, and takes an operation in place of a tensor.
NATIVE_CALL_FAILS: Consequences = (
    Consequence(_NATIVE, calls=True),
    Consequence((SESSION, OBJECTS), proved=False, calls=True),
)
IMPORT_FAILS: Consequences = (
    Consequence(_SESSIONS, bodies=_MAIN),
    Consequence((OBJECTS,), forms=CUT, bodies=_MAIN),
    Consequence(_SESSIONS, proved=False, bodies=_FUNCTION),
    Consequence((OBJECTS,), proved=False, bodies=_FUNCTION),
)
# Python infers the shapes of every graph that it imports. So does the C API; servers do not.
SHAPES_FAIL: Consequences = (
    Consequence((SESSION, CPP), since=_SEEN, bodies=_MAIN),
    Consequence((OBJECTS,), since=_SEEN, forms=CUT, bodies=_MAIN),
    Consequence((OBJECTS,), since=_SEEN, forms=REBUILT, bodies=_FUNCTION),
    Consequence((SESSION, CPP), proved=False, bodies=_FUNCTION),
    Consequence((OBJECTS,), proved=False, forms=CUT, bodies=_FUNCTION),
)
COPY_FAILS: Consequences = (
    Consequence((OBJECTS,), since=_SEEN, forms=CUT),
)  # shapes in the copy that a signature becomes
# Collections and versions, which the importer of Python reads.
META_GRAPH_FAILS: Consequences = (
    Consequence((SESSION,), since=_SEEN),
    Consequence((OBJECTS,), since=_SEEN, forms=CUT),
)
PYTHON_CALL_FAILS: Consequences = (Consequence(_ALL, calls=True),)
LOAD_FAILS: Consequences = (Consequence(_ALL),)
# The call is answered, and not as the signature says.
ANSWERS_OTHERWISE: Consequences = CALL_MAY_FAIL

# Rule -> what its faults keep from working, unless a fault says otherwise.
OF_RULE: dict[str, Consequences] = {
    "SMC100": MAY_FAIL,
    "SMC101": LOAD_FAILS,
    "SMC102": LOAD_FAILS,
    "SMC103": NONE,  # every loader takes the first of the files
    "SMC104": MAY_FAIL,
    "SMC105": NONE,
    "SMC106": NONE,
    "SMC107": NONE,
    "SMC108": MAY_FAIL,
    "SMC201": MAY_FAIL,
    "SMC202": MAY_FAIL,
    "SMC203": MAY_FAIL,
    "SMC204": NONE,
    "SMC205": NONE,
    "SMC211": MAY_FAIL,
    "SMC212": MAY_FAIL,
    "SMC213": SESSION_CALL_MAY_FAIL,  # tf.saved_model.load initialises variables
    "SMC214": OBJECTS_MAY_FAIL,
    "SMC301": SIGNATURE_FAILS,
    "SMC302": MAY_FAIL,
    "SMC303": IMPORT_FAILS,
    "SMC304": IMPORT_FAILS,
    "SMC305": MAY_FAIL,
    "SMC306": MAY_FAIL,
    "SMC307": NONE,
    "SMC308": IMPORT_FAILS,
    "SMC309": META_GRAPH_FAILS,
    "SMC310": MAY_FAIL,
    "SMC311": OBJECTS_MAY_FAIL,
    "SMC312": OBJECTS_MAY_FAIL,
    "SMC313": OBJECTS_MAY_FAIL,
    "SMC314": OBJECTS_MAY_FAIL,
    "SMC315": MAY_FAIL,
    "SMC316": MAY_FAIL,
    "SMC317": OBJECTS_MAY_FAIL,
    "SMC321": NONE,  # only reference_impl reads them
    "SMC401": SESSION_CALL_MAY_FAIL,  # tf.saved_model.load runs the collection of initialisers
    "SMC411": MAY_FAIL,
    "SMC412": MAY_FAIL,
    "SMC413": NONE,
    "SMC414": NONE,
    "SMC501": (Consequence(_SESSIONS, proved=False),),
    "SMC511": NONE,  # `compat` knows which releases register the class
    "SMC512": NONE,
    "SMC513": NONE,
    "SMC521": CUT_FAILS,
    "SMC522": CUT_FAILS,
    "SMC523": CUT_FAILS,
    "SMC524": CUT_FAILS,
    "SMC525": SIGNATURE_FAILS,
    "SMC526": OBJECTS_MAY_FAIL,
    "SMC527": META_GRAPH_FAILS,
    "SMC528": OBJECTS_MAY_FAIL,
    "SMC529": NONE,  # `compat` asks the same op history
    "SMC531": SHAPES_FAIL,
    "SMC532": ANSWERS_OTHERWISE,
    "SMC533": (Consequence((OBJECTS,), calls=True, forms=REBUILT),),
    "SMC541": NONE,  # a file that only TensorFlow Serving reads
    "SMC601": NONE,
    "SMC602": NONE,
    "SMC603": NONE,  # `compat` asks the op history
    "SMC604": PYTHON_CALL_FAILS,
    "SMC605": NONE,
}


def fails_in(stop: Stop, index: int) -> bool:
    """Return whether a part is proved to fail in a release, a number of the op history."""
    from savedmodel_tools.skew.history import history

    return stop.proved and (not stop.since or index >= history().nearest_after(stop.since))


def severity_in(stops: Iterable[Stop], releases: Sequence[int]) -> Severity | None:
    """Return how bad it is for the model in these releases that parts cannot be used.

    It is an error if ``tf.saved_model.load`` cannot load the model or call a part of it, or if
    servers and the C API cannot call a signature. Otherwise the rule decides (None), also where
    only the v1 loader refuses the model.
    """
    failing = [stop for stop in stops if _fails_in_any(stop, releases)]
    served = any(stop.loader is CPP and stop.part != LOAD for stop in failing)
    return Severity.ERROR if served or any(stop.loader is OBJECTS for stop in failing) else None


def _fails_in_any(stop: Stop, releases: Sequence[int]) -> bool:
    return any(fails_in(stop, index) for index in releases)
