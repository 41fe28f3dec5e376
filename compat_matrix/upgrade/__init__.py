"""Rolling upgrades: an old and a new model server, an old and a new export of each model, and the way from one to the other.

`asking` puts the four pairs of a server and an export into a plan and runs it; `questions` takes what clients ask from the
artifacts; `switching` goes both ways (servers first, exporters first) and back while `load` asks without a break; `verdict` says
which way works.
"""
