"""The half of this chapter that reads messages and needs no TensorFlow: from a TF 1.x MetaGraph to
functions over state.

program         finds variables, resources, assets and signatures; cuts functions out
extract         one such cut: feeds become arguments, state becomes captures
references, session_ops, inlining, shared_handles   rewrite the graph first
control_flow/   Switch, Merge, Enter and Exit become While and If
signatures      SignatureDefs, compared with the graph
init_nodes      the nodes that run after the restore
feed_check      tensors that cannot be fed; `named_tensors` are those that a caller names
selection       the part of a program that some signatures need
plain_restore   the part of a restore function that need not run
"""
