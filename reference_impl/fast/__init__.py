"""Faster twins of plain code, which is the text to read and decides what is right.

    calls           calls whose arguments are the tensors that a function takes
    variables       all plain variables of a load, one pass for each step
    values          their values: neighbours in a file together, large ones in few jobs of threads
    checksum        CRC-32C without the interpreter's lock

Each twin does the same as its plain code, by a test that compares the two, and has a row in
docs/evidence/benchmarks.md that defends it. A twin that meets anything unusual, such as an error,
leaves the work to the plain code, which then reports it. ``LoadOptions(fast=False)`` switches all
of them off.
"""
