"""Views of a SavedModel for people and programs, without TensorFlow and without running anything.

`model.inspect` is the entry; `types` has the types that it returns. `graph_view` walks a MetaGraph
and finds the nodes that its signatures reach. `effects` finds the ops that act on the machine, and
when they run; `restore_plan` follows the restore op of a TF 1.x model.
"""
