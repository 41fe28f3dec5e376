"""Rolling upgrades: from an old to a new model server, and from an old to a new export of each
model.

`asking` plans and runs the four pairs of a server and an export. `client_requests` takes requests
from the artifacts; `clients` learns from the old server with the old export how its clients ask,
and `promises` says what they rely on. `switching` upgrades in both orders (servers first, exporters
first) and back while `load` lets these clients ask without a break. `deciding` puts this together,
and `verdict` says which order works.
"""
