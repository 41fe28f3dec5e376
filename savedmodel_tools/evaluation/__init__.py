"""Evaluate one signature of a SavedModel without TensorFlow: the work of ``savedmodel-compat run``.

inputs      texts and files (npy, npz, JSON) -> arrays that fit the inputs of a signature
running     choose the signature, call it, or stop at a node
outputs     arrays -> JSON, or an npz file
"""
