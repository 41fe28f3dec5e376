"""Faults planted in a loader or a saver, one for each case of the matrix: what the case claims to
test must turn it red.

``python -m property_tests.planted`` runs all and writes ``docs/data/planted.json``, of which
``docs/evidence/index.md`` is made.
"""
