"""Views of a SavedModel for people and programs, without TensorFlow and without running it.

model                 `inspect`, the entry; `saved_model` is its result
types                 the named tuples in it
objects, functions,   the parts of a model, one module for each
variables,
signatures, programs
text, html, notebook  the parts as text and as HTML
"""
