"""Convert control flow of TF 1.x in a function to functional control flow.

`functionalise` is the entry. A loop (`frames`, `loops`) becomes a While, conditionals become If
(`conditionals`, `stages`, `dead_results`), TensorArrays become lists (`tensor_arrays`).
`editable_function` holds the function while it is rewritten.

RFC: V1-11, V1-14
"""
