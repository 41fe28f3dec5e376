"""SavedModels of TF 1.x: a MetaGraph without objects becomes functions over variables, resources
and assets.

reading/         the half without TensorFlow: from messages to a program, whose functions are
                 FunctionDefs
load             a program becomes live, in these steps:
live_program       the program, its state and the library of its functions
state              assets, variables and resources (`tables`)
restore            five ways to restore the variables
init_op            the init op, and what fills iterators; `initialization` notes who has a value
live_signatures    the signatures, and the functions of `prune` (`pruning`)
root             the loaded object
steps            what a watched load tells of state, values and the init op

RFC: V1-01..V1-18
"""
