"""Runtimes: a TensorFlow in an environment of its own, and the processes that run in it."""
