"""Faults in the reference implementation: a loader that loses something of what it reads, a saver
of what it writes.
"""

from __future__ import annotations

from property_tests.faults.declaring import Fault, Plant
from property_tests.faults.found_by.command import Command
from property_tests.faults.planting import implementation, release
from property_tests.faults.scenes import COUNTER, HALF_PLUS_TWO, ROOT, SUBJECT, TABLE

RUN = 'matrix run --out run -n 1 --fixtures artifacts --consumer "planted=python planted.py"'
MIGRATE = "migrate artifacts/{}/model --out migrated"

FAULTY_SAVE = """

_sound_save = save


def save(obj, path, *arguments, **options):
    import sys
    from pathlib import Path

    _sound_save(obj, path, *arguments, **options)
    sys.path.append({root!r})
    from property_tests.faults import losses

    losses.apply({fault!r}, Path(path))
"""


def saver(fault: str) -> Plant:
    """The commands are those of a release in which `reference_impl.save` has the fault."""

    return lambda folder: release(
        folder, "reference_impl/api.py", FAULTY_SAVE.format(root=str(ROOT), fault=fault)
    )


ROWS = (
    Fault(
        "loader-trainable",
        "frozen variables become trainable",
        implementation("trainable"),
        Command(SUBJECT, RUN, 1, "FAIL_STRUCTURE .*objects"),
        gate=True,
    ),
    Fault(
        "loader-captures",
        "captures are bound in another order",
        implementation("captures"),
        Command(SUBJECT, RUN, 1, "FAIL_VALUE .*values"),
    ),
    Fault(
        "loader-stale-value",
        "a variable is read before it is assigned",
        implementation("read_too_early"),
        Command(COUNTER, RUN, 1, "FAIL_VALUE .*values"),
    ),
    Fault(
        "loader-no-initialisers",
        "tables are not filled",
        implementation("initializers"),
        Command(SUBJECT, RUN, 1, "CALL_ERROR .*values"),
    ),
    Fault(
        "loader-gradients",
        "registered gradients are not used",
        implementation("custom_gradients"),
        Command(SUBJECT, RUN, 1, "objects"),
    ),
    Fault(
        "loader-defaults",
        "defaults of arguments are others",
        implementation("defaults"),
        Command(SUBJECT, RUN, 1, "FAIL_STRUCTURE .*objects"),
    ),
    Fault(
        "loader-first-trace",
        "only the first trace is kept",
        implementation("traces"),
        Command(SUBJECT, RUN, 1, "FAIL_STRUCTURE .*objects"),
    ),
    Fault(
        "loader-last-bit",
        "a number is one unit in the last place away, within the tolerance",
        implementation("last_bit"),
        Command(SUBJECT, RUN, 1, "FAIL_VALUE .*checkpoint"),
    ),
    Fault(
        "saver-stale-values",
        "the second save stores the values of the first",
        implementation("stale_values"),
        Command(COUNTER, RUN, 1, "reexport"),
    ),
    Fault(
        "saver-children",
        "the last child of every object is saved under another name",
        implementation("saver:children"),
        Command(SUBJECT, RUN, 1, "reexport"),
    ),
    Fault(
        "migrate-values",
        "`migrate` writes other weights",
        saver("last_bit"),
        Command(HALF_PLUS_TWO, MIGRATE, 1, "differ"),
        gate=True,
    ),
    Fault(
        "migrate-table",
        "`migrate` loses the rows of a table",
        saver("initializers"),
        Command(TABLE, MIGRATE, 1, "differ"),
    ),
    Fault(
        "migrate-signature",
        "`migrate` loses a signature",
        saver("signature_keys"),
        Command(HALF_PLUS_TWO, MIGRATE, 1, "signature"),
    ),
)
