"""Effects of a model on the machine that loads it, found without running anything.

effects         every op that acts on the machine, and the parts of the model that run it
effect          the type of such a finding
op_effects      what each op may do, from the registries of all examined releases
path_origins    where the path comes from that an op reads or writes
import_folding  what TensorFlow computes while it imports a graph
folding_tables  the ops for which it does, and `folded_sizes` how large the results are
load_sizes      what a load computes, and how large it gets; `known_tensors` has the rules
machine_ops     the decision: warn, refuse or allow
"""
