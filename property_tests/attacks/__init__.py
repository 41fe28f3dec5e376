"""Hostile SavedModels, as generators, and what each command answers to them: ``python -m
property_tests.attacks [NAME...]``.

paths, bombs, contradictions, objects, naming, nodes, effects, sizes
                the attacks by a model: functions that make a directory
published       those that somebody has published, by their ids
files, special  the attacks by what lies beside it, and by what is not a file
forge           the messages they are made of
attempt         a command on an attack, in a process held to limits and watched
verdicts.toml   what each command must answer; docs/evidence/index.md is made of it
"""
