"""Rare paths for programs that were written for `tf.saved_model`.

tensorflow_errors  errors of ours that are errors of TensorFlow's classes, too
strict_mode        what a save that loses something does: refuse, or warn
remote             models at a URL
graph_mode         initialisation by a session
keras_identity     what Keras 2 writes about its layers, kept unused
"""
