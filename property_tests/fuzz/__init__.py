"""Bytes nobody wrote, given to every parser: ``python -m property_tests.fuzz TARGET --runs N --seed
S``.

The contract of each parser: a named error of ours or a correct result, under a second and 256 MiB;
never a hang, a crash, a read outside the directory, a write anywhere.

    mutation     changes of plain bytes
    wire         changes of protocol messages, field by field, lengths kept right
    tables       changes of checkpoint indexes and bundles behind checksums made right again
    records      changes of split files behind their hashes
    trees        changes of JSON and TOML that keep them JSON and TOML
    archives     changes of .npz files, member by member
    serving      answers of a server, and what a client makes of them
    parsers      what is called, which errors are an answer
    targets      the table of all: where the seeds come from, how they are changed, what is called
    guard        the limits a parser is held to while it runs
    loop         a child process that runs a target, and the parent that outlives it

Findings are kept as files in ``corpus/<target>/`` and replayed by `property_tests/test_fuzz.py`.
"""
