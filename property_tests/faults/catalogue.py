"""All planted faults of the project, by the place where each is planted."""

from __future__ import annotations

from dataclasses import replace

from property_tests.faults import (
    at_rest,
    cases,
    consumers,
    disks,
    implementation,
    records,
    rules,
    run_folders,
    servers,
    tensorflows,
    workers,
)
from property_tests.faults.declaring import Fault

PLACES = {
    "a model at rest": at_rest.ROWS,
    "a model at rest, for each rule of `verify`": rules.ROWS,
    "the reference implementation": implementation.ROWS,
    "a consumer": consumers.ROWS,
    "what is on record": records.ROWS,
    "the folder of a run": run_folders.ROWS,
    "a server, a TensorFlow": servers.ROWS + tensorflows.ROWS,
    "a worker": workers.ROWS,
    "a disk, a process that writes": disks.ROWS,
    "a loader or saver, for each case": cases.ROWS,
}


def _catalogue() -> tuple[Fault, ...]:
    faults = []
    for place, rows in PLACES.items():
        faults += [replace(row, place=place) for row in rows]
    return tuple(faults)


CATALOGUE = _catalogue()
