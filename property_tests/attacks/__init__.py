"""Hostile SavedModels, as generators, and what each command answers to them: ``python -m property_tests.attacks [NAME...]``.

models, files   the attacks: functions that make a directory
forge           the messages they are made of
attempt         a command on an attack, in a process held to limits and watched
verdicts.toml   what each command must answer; docs/attacks.md is made of it
"""
