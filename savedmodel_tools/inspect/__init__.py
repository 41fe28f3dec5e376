"""``inspect``: a model on a terminal.

tree           the lines of a model: MetaGraphs, signatures, objects, functions, assets
watched_load   ``--trace``: each step of a load
"""
