"""SavedModels of TF 1.x: a MetaGraph without objects becomes functions over variables, resources
and assets.

program        finds variables, resources, assets and signatures; cuts functions out (extract)
signatures     SignatureDefs, compared with the graph
references, session_ops, inlining   rewrite the graph first
control_flow/  Switch, Merge, Enter and Exit become While and If
load, root     make a program live, with initialization, tables and pruning
plain_restore  the part of a restore function that need not run
selection      loads a part of a model
steps          what a watched load tells of state, values and the init op

Only `load`, `root`, `initialization`, `tables`, `pruning` and `steps` need TensorFlow.

RFC: V1-01..V1-18
"""
