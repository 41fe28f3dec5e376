"""The page of the rules of `verify`, made of their registry."""

from __future__ import annotations

from docs.markdown import table
from savedmodel_tools.verify.consequences import (
    CUT,
    OF_RULE,
    REBUILT,
    Body,
    Consequence,
)
from savedmodel_tools.verify.rules import all_rules

HEAD = """# The rules of `verify`

[`savedmodel-compat verify`](verify.md) looks for these defects. An id never changes its meaning; `--select` and `--ignore` take
ids and their beginnings. `--rule ID` and [the table of explanations](rules_explained.md) show why a finding matters and what to do. The table has the severity of most findings; where it depends on the
model or on the releases of `--target`, the finding has its own.

"""  # noqa: E501
STOPS = """
## What a finding stops

`verify` raises the severity of a finding to an error if a release of the target is proved to fail, and `compat` starts from the
same list. `load` stands for every part of the MetaGraph, `calls` for the signatures and functions that the finding names. For the
loader `objects`, a graph is *cut* if it has no object graph or is not alone, and *rebuilt* otherwise. A finding may stop less or
more than its rule; then `compat` shows what it stops.

"""  # noqa: E501

CONCERNS = {
    "SMC1": "The file",
    "SMC2": "The checkpoint and its values",
    "SMC3": "Graph, functions, objects",
    "SMC4": "Tables and assets",
    "SMC5": "Where it runs: devices, TensorFlow's Python loaders, training",
    "SMC6": "What it does to a machine",
}


def rows() -> list[tuple[str, ...]]:
    """Id, name, severity, summary."""
    return [
        (_link(rule.id), f"`{rule.name}`", rule.severity.word, rule.summary) for rule in all_rules()
    ]


def stops() -> list[tuple[str, ...]]:
    """Id, what is proved to fail, what may fail; only rules whose findings stop something."""
    found = []
    for rule in all_rules():
        proved = [_words(item) for item in OF_RULE[rule.id] if item.proved]
        others = [_words(item) for item in OF_RULE[rule.id] if not item.proved]
        if proved or others:
            found.append((rule.id, "; ".join(proved), "; ".join(others)))
    return found


def stops_table() -> str:
    """The section on what findings stop."""
    return STOPS + table(("rule", "must fail", "may fail"), stops())


def _words(item: Consequence) -> str:
    where = {CUT: ["cut"], REBUILT: ["rebuilt"]}.get(item.forms, [])
    where += {(Body.MAIN,): ["main graph"], (Body.FUNCTION,): ["function"]}.get(item.bodies, [])
    where += [f"since {item.since}"] if item.since else []
    loaders = ", ".join(f"`{loader.value}`" for loader in item.loaders)
    return f"{'calls' if item.calls else 'load'}: {loaders}" + (
        f" ({', '.join(where)})" if where else ""
    )


def _link(rule: str) -> str:
    """Return a link to the explanation of a rule, e.g. for `SMC100`."""
    return f"[{rule}](rules_explained.md#{rule.lower()})"


def explained_page() -> str:
    """Return the page of explanations: each rule with why and what to do, by concern."""
    out = ["# The rules of `verify`, explained\n"]
    for prefix, title in CONCERNS.items():
        out.append(f"\n## {title}\n")
        for rule in all_rules():
            if rule.id.startswith(prefix):
                out.append(
                    f"\n### {rule.id}\n\n`{rule.name}`, {rule.severity.word}. {rule.summary}\n\n"
                )
                out.append(f"*Why:* {rule.why}\n\n*What to do:* {rule.fix}\n")
    return "".join(out)
