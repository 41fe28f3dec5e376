"""Rare paths for programs that were written for `tf.saved_model`.

tensorflow_errors  errors of ours that are errors of TensorFlow's classes, too
strict_mode        what a save that loses something does: refuse, or warn
remote             models at a URL
graph_mode         initialisation by a session
module_variables   which variables of a loaded object a module or layer around it sees
hidden_children    children with names that Python or TensorFlow would call
keras_identity     what Keras 2 writes about its layers, kept unused
"""
