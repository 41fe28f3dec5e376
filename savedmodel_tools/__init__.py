"""Models at rest, one or many: found, verified, compared, edited.

Nothing here imports TensorFlow or runs a model.
"""
