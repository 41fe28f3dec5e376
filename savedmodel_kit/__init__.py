"""A kit for readers of SavedModels in any language: artifacts, what each of them means, and files
that a reader must refuse.

constraints         the constraints of the specification (docs/format/spec) with their levels
meaning             the meaning of a model, level by level, as the kit states it
objects             its level L2: the object graph of a MetaGraph, checked and described
hostile             files that a reader must refuse, made by code
forge               tables, bundles and record files made by hand, valid and not
artifacts           the models of the kit, and where they come from
build               makes the archive
commands            `kit build` and `kit check`
consumer            asks a program about each artifact, or reads its answers from a file
answers             level L3: the answers of a program that speaks the worker protocol
score               which constraints a reader keeps
"""
