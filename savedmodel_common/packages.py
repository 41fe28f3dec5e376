"""The names of our packages, the lowest floor first: the one list of them in code.

`pyproject.toml` has it for the tools that read that file; a test holds both against each other.
"""

OURS = (
    "reference_impl",
    "reference_eval",
    "savedmodel_common",
    "savedmodel_tools",
    "savedmodel_kit",
    "compat_matrix",
    "savedmodel_standin",
    "savedmodel_servers",
    "savedmodel_migration",
    "savedmodel_plugin_kit",
    "savedmodel_prove",
    "savedmodel_compat",
)
FIXTURES = ("fixtures_v1", "fixtures_v2")  # data, and the programs that made it
