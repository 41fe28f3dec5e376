"""Programs that run inside a runtime, from TensorFlow 1.4 on: the only part of the harness that
imports TensorFlow.
"""
