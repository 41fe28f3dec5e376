"""Version skew: what each TensorFlow release knows (ops, attrs, values, kernels), and names for the errors of those that do not.

``op_history.jsonl`` is made by ``collect.py`` from the registries of genuine runtimes; ``history.py`` answers from it in
milliseconds and without TensorFlow. ``naming.py`` turns the words of a failing consumer into a :class:`~.naming.Skew`,
``locate.py`` says where in the model the op is, ``needs.py`` which releases have everything that a model uses.
"""
