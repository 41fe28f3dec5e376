"""GatherTree: the beams of a beam search, followed from their last step.

Dtypes: int32.
Accuracy: exact.
"""

from __future__ import annotations

import numpy as np

from reference_eval.arrays import Array
from reference_eval.registry import op


@op("GatherTree", "Addons>GatherTree")
def gather_tree(steps: Array, parents: Array, lengths: Array, end: Array) -> Array:
    beams = np.full_like(steps, end)
    most_steps = steps.shape[0]
    for batch, beam in np.ndindex(steps.shape[1:]):
        last = int(lengths[batch]) if lengths[batch] < most_steps else most_steps
        parent = beam
        for step in range(last - 1, -1, -1):
            beams[step, batch, beam] = steps[step, batch, parent]
            parent = parents[step, batch, parent]
        hits = np.flatnonzero(beams[:last, batch, beam] == end)
        if hits.size:
            beams[hits[0] :, batch, beam] = end
    return beams
