"""Faults of every kind, each with the command of a user that must find it; ``python -m
property_tests.planted.kinds`` runs them.

declaring       what a declaration says: what is planted, where, the command, its exit code, what it
                must say
scenes          the sound files that a fault is planted in
at_rest, implementation, consumers, records, run_folders, servers, tensorflows
                the declarations, by the place of the fault
running         a command without the fault and with it
"""
