"""Algorithms on GraphDef, FunctionDef and the object graph. Needs no TensorFlow.

names           every name that the format reserves
object_graph    paths of objects, their checkpoint keys, and checks
graphs          edges, references between functions, closures and orders
function_defs   FunctionDefs that are built by hand
control_flow/   TF 1.x control flow (Switch, Merge, Enter, Exit) becomes While and If
"""
