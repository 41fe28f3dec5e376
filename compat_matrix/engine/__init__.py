"""The engine runs a plan: it prepares the output folder, executes the cells, judges each and has
the reports written.

`executor` alone turns a cell into a result. It has two front ends. `sessions` executes the cells of
a folder in pytest, in one process or in many, for `matrix run`, `gate` and `grid`. `loop` executes
them in this process, with workers that stay warm from one plan to the next, for `check`, `migrate`,
`downgrade` and `contract check --answers`; `asking` makes the plan for a model with recorded
answers. `running` prepares a folder and has it reported on; `result_log` writes `results.jsonl`.
"""
