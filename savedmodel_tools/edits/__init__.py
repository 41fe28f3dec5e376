"""Edits of SavedModels at rest: signatures, tags, and what serving does not need.

No function is traced again, none is run.

    draft       a model in memory, its edits, and the writing of a new directory: staged, proved,
                renamed
    objects     the object graph, its counterpart in the checkpoint, Keras' metadata: edges, nodes,
                numbers
    proof       what must be as before, and what must hold in any model, asked of the files that
                were written
    signatures, arguments, slim      the edits
    signature_changes                several changes of signatures, in one edit

The source is only read. What is kept keeps its bytes or its meaning
(`savedmodel_tools.canonical.form`); what cannot be done safely is refused by name.
"""
