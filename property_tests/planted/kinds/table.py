"""All declarations, in the order of the page."""

from __future__ import annotations

from dataclasses import replace

from property_tests.planted.kinds import (
    at_rest,
    consumers,
    implementation,
    records,
    run_folders,
    servers,
    tensorflows,
)
from property_tests.planted.kinds.declaring import Planted

PLACES = {
    "a model at rest": at_rest.ROWS,
    "the reference implementation": implementation.ROWS,
    "a consumer": consumers.ROWS,
    "what is on record": records.ROWS,
    "the folder of a run": run_folders.ROWS,
    "a server, a TensorFlow": servers.ROWS + tensorflows.ROWS,
}
TABLE: tuple[Planted, ...] = tuple(
    replace(row, place=place) for place, rows in PLACES.items() for row in rows
)
