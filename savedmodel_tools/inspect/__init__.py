"""``inspect``: a model on a terminal.

tree           the lines of a model: MetaGraphs, signatures, objects, functions, assets
outline        lines of styled text, and trees of them
printing       an outline on a terminal, in a file or a pipe
watched_load   ``--trace``: each step of a load
"""
