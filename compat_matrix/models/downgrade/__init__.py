"""A model rewritten for an older release.

    changes     what was done, as data
    attrs       attrs that the release does not know, defaults that it does not have
    replace     newer ops by older ones of the same answer
    removal     nodes without a result
    rewrite     all of these, of a MetaGraph
    model       the plan for a model, and the new directory

`compat_matrix.models.compat` predicts whether the release loads the result; `compat_matrix.models.prove` asks the release.
"""
