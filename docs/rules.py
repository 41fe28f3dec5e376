"""The page of the rules of `verify`, made of their registry."""

from __future__ import annotations

from compat_matrix.models.verify.rules import all_rules

HEAD = """# The rules of `verify`

[`savedmodel-compat verify`](verify.md) looks for these defects. An id never changes its meaning; `--select` and `--ignore` take
ids and their beginnings, `--rule ID` shows what stands here. The severity is that of most findings; where it depends on the
model, the finding has its own.

"""

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
    return [(f"[{rule.id}](#{rule.id.lower()})", f"`{rule.name}`", rule.severity.word, rule.summary) for rule in all_rules()]


def explanations() -> str:
    """Each rule with why and what to do, by concern."""
    out = []
    for prefix, title in CONCERNS.items():
        out.append(f"\n## {title}\n")
        for rule in all_rules():
            if rule.id.startswith(prefix):
                out.append(f"\n### {rule.id}\n\n`{rule.name}`, {rule.severity.word}. {rule.summary}\n\n")
                out.append(f"*Why:* {rule.why}\n\n*What to do:* {rule.fix}\n")
    return "".join(out)
