"""Every planted fault of the project, each with who must notice it. The walk:

declaring     `Fault`: a name, what is wrong, the function that plants it, who finds it
catalogue     all of them, by the place where each is planted:
    at_rest, rules, implementation, consumers, records, run_folders, servers, tensorflows, workers,
    disks, cases  one module for each place; `rules` has a defect for each rule of `verify`,
                  `cases` a fault for each case of the matrix
found_by      who must notice: a command, a rule, the checks of a case, a cell of a run, a writer
stage         where faults are planted, and what finders share
__main__      the runner: ``python -m property_tests.faults [NAME ...] [--gate] [--write]``
record        docs/data/faults.json, of which docs/evidence/planted_faults.md is built

What the modules of faults use:

planting      functions that plant: an edit of a model, a flipped byte, a release of this project
losses        what a loader or a saver may lose, as edits of a SavedModel
scenes        the sound files that a fault is planted in
scene_cases   the cases that scenes are made of
programs      programs with a fault: a loader and saver, a consumer, a worker; a full disk
faulty_world  a `matrix run` whose workers are `programs/faulty_worker.py`
finished_runs a folder as a run leaves it, made without running anything
"""
