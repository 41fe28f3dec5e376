"""Keras 2 SavedModels become Keras 3 models: what a SavedModel says of its layers, the rules of
translation, the new model.

`reading` and `rules` need neither TensorFlow nor Keras. The other modules run in a worker.
"""
