"""Version skew: what each TensorFlow release knows (ops, attrs, values, kernels), and names for the
errors of releases that do not.

``op_history.jsonl`` is made from the registries of genuine runtimes; ``history.py`` answers from it
in milliseconds and without TensorFlow. ``naming.py`` turns the message of a failing consumer into a
:class:`~.naming.Skew`. ``locate.py`` finds the op in the model. ``needs.py`` finds the releases
that have everything a model uses.
"""
