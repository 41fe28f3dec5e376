"""The ops: one file for an op and its versions.

Each module states the dtypes of its op and how close its results are to those of TensorFlow's
kernels on a CPU, and registers pure functions on NumPy arrays with `reference_eval.registry.op`.
"""
