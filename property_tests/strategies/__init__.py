"""Valid models by construction.

A model is described as plain data first (`Model`), which hypothesis shrinks. Its `script()` is a
program that builds it, and the only thing that ever builds it: what a failure prints is what was
run.
"""
