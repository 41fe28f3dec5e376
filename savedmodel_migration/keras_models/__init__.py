"""SavedModels that Keras 2 wrote: every layer that Keras 3 has too, and whole models, made inside
each release's own TensorFlow.

``layers.py`` and ``whole.py`` say what is made, ``recorder.py`` makes it (Python 3.6 syntax: it
runs under TensorFlow 2.0), ``material.py`` keeps the results in the user's cache folder. Nothing
here is needed by ``savedmodel-compat`` itself.
"""
