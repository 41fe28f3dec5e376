"""A model rewritten for an older release.

    attrs       attrs that the release does not know, defaults that it does not have
    replace     newer ops by older ones of the same answer
    rewrite     all of these, of a MetaGraph; nodes without a result go
    model       the plan for a model, and the new directory

`savedmodel_tools.compat` predicts whether the release loads the result;
`compat_matrix.exports.release_proof` asks the release.
"""
