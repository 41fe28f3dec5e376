"""Effects of a model on the machine that loads it, found without running anything.

effects         every op that acts on the machine, and the parts of the model that run it
effect          the type of such a finding
op_effects      what each op may do, from the registries of all examined releases
path_origins    where the path comes from that an op reads or writes
import_folding  what TensorFlow computes while it imports a graph
folding_tables  the ops for which it does, and `folded_sizes` how large the results are
load_sizes      what a load computes, and how large it gets; `known_tensors` has the rules
size_operands   ops whose result is as large as a number that they are given
machine_ops     the decision: warn, refuse or allow

`may_run` is the one question that a load asks before it runs functions of a model.
"""

from __future__ import annotations

from reference_impl.safety.machine_ops import Running, may_run

__all__ = ["Running", "may_run"]
