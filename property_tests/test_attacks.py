"""Hostile SavedModels: each command gives the verdict of `attacks/verdicts.toml`, in bounds, and
touches nothing else.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from property_tests.attacks import commands
from property_tests.attacks.attempt import ATTACKS
from property_tests.attacks.naming import ESCAPES, HTML
from property_tests.attacks.special import verdict_of
from savedmodel_common import toml

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="processes are forked and limited"
)
VERDICTS = toml.read(Path(__file__).parent / "attacks" / "verdicts.toml")
CROWDS = ("million_children", "empty_messages")  # large files, honestly many things in them
SECONDS, MIB = 20, 256  # a tenth of a second and some megabytes where nobody else computes
CROWD_SECONDS, CROWD_MIB = 110, 1800


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What every command said, from processes that have done nothing else.

    `load` has a process of its own: each attempt is a fork, and TensorFlow's pages would be copied
    for the others too.
    """
    folder, started = tmp_path_factory.mktemp("answers"), []
    for part in ["--without-load", *(["--load"] if find_spec("tensorflow") else [])]:
        with (folder / part).open("w") as said:
            command = [sys.executable, "-m", "property_tests.attacks", "--json", part]
            started.append(subprocess.Popen(command, cwd=Path(__file__).parents[1], stdout=said))
    assert [process.wait() for process in started] == [0] * len(started)
    lines = [
        json.loads(line) for said in folder.iterdir() for line in said.read_text().splitlines()
    ]
    return {(line["attack"], line["command"]): line for line in lines}


def test_the_table_has_every_attack():
    assert list(VERDICTS) == list(dict.fromkeys(map(verdict_of, ATTACKS)))
    assert all(list(verdicts) == list(commands.COMMANDS) for verdicts in VERDICTS.values())


COMMANDS = [
    *[name for name in commands.COMMANDS if name != "load"],
    pytest.param(
        "load",
        marks=[
            pytest.mark.tensorflow,
            pytest.mark.skipif(not find_spec("tensorflow"), reason="no TensorFlow"),
        ],
    ),
]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_verdict(answers, attack, command):
    answer = answers[attack, command]
    verdict, _, detail = VERDICTS[verdict_of(attack)][command].partition(": ")
    assert answer["verdict"] == verdict, answer["told"]
    acts = ""
    if detail.startswith("writes "):
        acts, _, detail = detail.removeprefix("writes ").partition("; ")
    assert answer["trespasses"] == [f"changes {one}" for one in acts.split(", ") if one]
    if verdict == "accepted" and command in ("inspect", "verify", "load"):
        assert detail in answer["told"]
        assert bool(detail) == bool(answer["told"])
    if verdict == "accepted" and command == "slim" and detail:
        assert answer["told"] == ("" if detail == "nothing" else detail)
    crowd = attack in CROWDS
    assert answer["seconds"] < (CROWD_SECONDS if crowd else SECONDS)
    assert answer["kib"] >> 10 < (CROWD_MIB if crowd else MIB)


def test_names_cannot_steer_a_terminal(answers):
    for attack in ("terminal_escapes", "html_names", "tags_as_paths"):
        for command in set(commands.COMMANDS) - {"load"}:
            printed = answers[attack, command]["printed"]
            assert printed.replace("\n", "").isprintable() and not set(ESCAPES) & set(
                "\x1b\x07\u202e\x9b"
            ) & set(printed)
    assert (
        HTML in answers["html_names", "inspect"]["printed"]
    )  # plain text: what it looks like is not ours to change


@pytest.mark.clause("RES-14")
def test_a_shard_that_is_a_link_out_of_the_model_is_not_read(answers):
    for command in ("inspect", "load") if find_spec("tensorflow") else ("inspect",):
        answer = answers["shard_link", command]
        assert "symbolic link out of the directory" in answer["told"] and answer["trespasses"] == []
