"""Faults in the reference implementation: a loader that loses something of what it reads, a saver
of what it writes.
"""

from __future__ import annotations

from property_tests.planted.kinds.declaring import Plant, Planted
from property_tests.planted.kinds.planting import implementation, release
from property_tests.planted.kinds.scenes import COUNTER, HALF_PLUS_TWO, ROOT, SUBJECT, TABLE

RUN = 'matrix run --out run -n 1 --fixtures artifacts --consumer "planted=python planted.py"'
MIGRATE = "migrate artifacts/{}/model --out migrated"

FAULTY_SAVE = """

_sound_save = save


def save(obj, path, *arguments, **options):
    import sys
    from pathlib import Path

    _sound_save(obj, path, *arguments, **options)
    sys.path.append({root!r})
    from property_tests.planted import faults

    faults.apply({fault!r}, Path(path))
"""


def saver(fault: str) -> Plant:
    """The commands are those of a release in which `reference_impl.save` has the fault."""

    return lambda folder: release(
        folder, "reference_impl/api.py", FAULTY_SAVE.format(root=str(ROOT), fault=fault)
    )


ROWS = (
    Planted(
        "loader-trainable",
        "frozen variables become trainable",
        SUBJECT,
        implementation("trainable"),
        RUN,
        1,
        "FAIL_STRUCTURE .*objects",
        gate=True,
    ),
    Planted(
        "loader-captures",
        "captures are bound in another order",
        SUBJECT,
        implementation("captures"),
        RUN,
        1,
        "FAIL_VALUE .*values",
    ),
    Planted(
        "loader-stale-value",
        "a variable is read before it is assigned",
        COUNTER,
        implementation("read_too_early"),
        RUN,
        1,
        "FAIL_VALUE .*values",
    ),
    Planted(
        "loader-no-initialisers",
        "tables are not filled",
        SUBJECT,
        implementation("initializers"),
        RUN,
        1,
        "CALL_ERROR .*values",
    ),
    Planted(
        "loader-gradients",
        "registered gradients are not used",
        SUBJECT,
        implementation("custom_gradients"),
        RUN,
        1,
        "objects",
    ),
    Planted(
        "loader-defaults",
        "defaults of arguments are others",
        SUBJECT,
        implementation("defaults"),
        RUN,
        1,
        "FAIL_STRUCTURE .*objects",
    ),
    Planted(
        "loader-first-trace",
        "only the first trace is kept",
        SUBJECT,
        implementation("traces"),
        RUN,
        1,
        "FAIL_STRUCTURE .*objects",
    ),
    Planted(
        "loader-last-bit",
        "a number is one unit in the last place away, within the tolerance",
        SUBJECT,
        implementation("last_bit"),
        RUN,
        1,
        "FAIL_VALUE .*checkpoint",
    ),
    Planted(
        "saver-stale-values",
        "the second save stores the values of the first",
        COUNTER,
        implementation("stale_values"),
        RUN,
        1,
        "reexport",
    ),
    Planted(
        "saver-children",
        "the last child of every object is saved under another name",
        SUBJECT,
        implementation("saver:children"),
        RUN,
        1,
        "reexport",
    ),
    Planted(
        "migrate-values",
        "`migrate` writes other weights",
        HALF_PLUS_TWO,
        saver("last_bit"),
        MIGRATE,
        1,
        "differ",
        gate=True,
    ),
    Planted(
        "migrate-table",
        "`migrate` loses the rows of a table",
        TABLE,
        saver("initializers"),
        MIGRATE,
        1,
        "differ",
    ),
    Planted(
        "migrate-signature",
        "`migrate` loses a signature",
        HALF_PLUS_TWO,
        saver("signature_keys"),
        MIGRATE,
        1,
        "signature",
    ),
)
