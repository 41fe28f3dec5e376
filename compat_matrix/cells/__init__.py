"""The words of the matrix: a cell is one question, an outcome is what became of it.

plan          cells, and the plan: every cell, listed before anything runs
outcomes      the closed list of outcomes
results       what was observed of a cell, as the lines of results.jsonl
consumers     who reads artifacts and what can be asked of them
producers     who makes artifacts; `generators` are those of the committed fixtures
registry      consumers and producers by name, those of plug-ins too
sole_writer   one command at a time writes to an output folder
"""
