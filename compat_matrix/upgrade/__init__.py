"""Rolling upgrades: from an old to a new model server, and from an old to a new export of each model.

`asking` plans and runs the four pairs of a server and an export. `client_requests` takes requests from the artifacts.
`switching` upgrades in both orders (servers first, exporters first) and back while `load` sends requests without a break.
`verdict` says which order works.
"""
