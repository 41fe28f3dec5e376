"""``python -m property_tests.attacks [NAME...]``: what each command answers to each attack, with
time and memory.
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
from importlib.util import find_spec

from property_tests.attacks.attempt import ATTACKS, COMMANDS, attempt, made
from property_tests.attacks.commands import warm


def main(arguments: list[str]) -> None:
    """Print a line per attack and command, as JSON with --json; --without-load leaves out
    TensorFlow, --load all else.
    """
    names = [argument for argument in arguments if not argument.startswith("--")]
    commands = dict(COMMANDS)
    warm()
    if find_spec("tensorflow") and "--without-load" not in arguments:
        importlib.import_module("reference_impl.api")  # once for all children
    else:
        del commands["load"]
    if "--load" in arguments:
        commands = {"load": COMMANDS["load"]}
    gc.freeze()  # a collection in a child would copy all that is here
    for name in names or ATTACKS:
        with made(name) as folder:
            for command in commands:
                answer = attempt(folder, command)
                if "--json" in arguments:
                    print(
                        json.dumps({"attack": name, "command": command, **vars(answer)}), flush=True
                    )
                    continue
                figures = f"{answer.seconds:.1f} s, {answer.kib >> 10} MiB"
                told = f" | {ascii(answer.told)[:160]}" if answer.told else ""
                print(
                    f"{name} {command}: {answer.verdict} ({figures})"
                    f" {', '.join(answer.trespasses)}{told}",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:])
