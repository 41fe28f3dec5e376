"""Views of a SavedModel for people and programs, without TensorFlow and without running anything.

`model.inspect` is the entry; `types` holds what it returns. `graph_view` walks a MetaGraph and tells what its signatures reach.
`effects` tells which ops act on the machine and when; `restore_plan` follows the restore op of a TF 1.x model.
"""
