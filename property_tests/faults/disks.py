"""Faults of a disk, and of the process that writes to it: no room, a kill in the middle."""

from __future__ import annotations

from property_tests.faults.declaring import Fault
from property_tests.faults.found_by.writer import KilledWriter, RunOnFullDisk, WriterOnFullDisk
from property_tests.faults.planting import implementation

KILL_POINTS = "tests/support/kill_points.py"  # below the root of the checkout
PAGES, FILES = implementation("pages"), implementation("files")
KILLS = implementation("kills")
NO_PAGES = "the disk has no room for one more page, then for one, and so on"
NO_FILES = "the disk has no room for one more file, then for one, and so on"
SAVE = WriterOnFullDisk("save", "old", "new")
SAVE_OF_TENSORFLOW = WriterOnFullDisk("tensorflow", "1.0", "2.0")
REPORT, UPDATE = WriterOnFullDisk("report"), WriterOnFullDisk("update")
KILLED_REPORT = "property_tests.faults.programs.killed_report"
NOTHING_LEFT = frozenset("0")  # when the command has run again
KILLED_WHOLE_SAVE = Fault(
    "killed-whole-save",
    "`reference_impl.save` is killed at each moment and at random ones",
    KILLS,
    KilledWriter(("-m", "property_tests.faults.programs.save_kills"), ("1.0", "2.0"), 101),
)

ROWS = (
    Fault("full-disk-save-pages", NO_PAGES, PAGES, SAVE, gate=True),
    Fault("full-disk-save-files", NO_FILES, FILES, SAVE, gate=True),
    Fault("full-disk-whole-save-pages", NO_PAGES, PAGES, SAVE_OF_TENSORFLOW),
    Fault("full-disk-whole-save-files", NO_FILES, FILES, SAVE_OF_TENSORFLOW),
    Fault("full-disk-report-pages", NO_PAGES, PAGES, REPORT, gate=True),
    Fault("full-disk-report-files", NO_FILES, FILES, REPORT, gate=True),
    Fault("full-disk-update-pages", NO_PAGES, PAGES, UPDATE, gate=True),
    Fault("full-disk-update-files", NO_FILES, FILES, UPDATE, gate=True),
    Fault(
        "full-disk-run",
        "the disk is full in the middle of a run",
        PAGES,
        RunOnFullDisk((14,)),
        gate=True,
    ),
    Fault(
        "full-disk-run-of-two",
        "the disk is full in the middle of a run of two processes",
        PAGES,
        RunOnFullDisk((14,), ("-n2",)),
        gate=True,
    ),
    Fault(
        "full-disk-resumed-runs",
        "the disk is full again each time a run is resumed",
        PAGES,
        RunOnFullDisk((10, 14, 16, 18, 20, 22)),
    ),
    Fault(
        "killed-save-exchange",
        "a writer is killed, where the new export is exchanged for the old one",
        KILLS,
        KilledWriter((KILL_POINTS, "exchange"), ("old", "new", "next"), 20),
    ),
    Fault(
        "killed-report",
        "`matrix report` is killed at each moment at which it changes the folder",
        KILLS,
        KilledWriter(
            ("-m", KILLED_REPORT, "report"),
            ("old", "unsealed", "new"),
            6,
            NOTHING_LEFT,
            "matrix report",
        ),
        gate=True,
    ),
    Fault(
        "killed-update",
        "`matrix expect update` is killed at each moment at which it changes the folder",
        KILLS,
        KilledWriter(
            ("-m", KILLED_REPORT, "expect_update"),
            ("old", "new"),
            6,
            NOTHING_LEFT,
            "matrix expect update",
        ),
        gate=True,
    ),
    KILLED_WHOLE_SAVE,
)
