"""The lock of a plug-in: what it names is installed by its hash or not at all.

A wheel of ours and uv; no network.
"""

import hashlib

from plugin_world import ROOT, page_files, plugin_world, results, run
from tiny_runtime import PYTHON, wheel

CONSUMER = """
[consumer.{name}]
command = ["{{python}}", "consumer.py"]
version = "9.9.9"
capabilities = ["tags"]
lock = "{name}.lock"
python = "{python}"
checks = ["load"]
environment = {{ PYTHONPATH = "{root}" }}
"""


def test_a_lock_is_installed_by_its_hashes_or_not_at_all(tmp_path):
    """The consumer is as old as the package of its lock says, which nobody else has."""
    world = plugin_world(page_files(tmp_path))
    package = wheel(tmp_path)
    line = f"tensorflow @ {package.as_uri()}"
    right = hashlib.sha256(package.read_bytes()).hexdigest()
    locks = {
        "mine": f"{line} --hash=sha256:{right}",
        "forged": f"{line} --hash=sha256:{'0' * 64}",
        "bare": line,
    }
    for name, text in locks.items():
        (tmp_path / f"{name}.lock").write_text(text + "\n")
    text = (tmp_path / "plugins.toml").read_text()
    made = "".join(CONSUMER.format(name=name, python=PYTHON, root=ROOT) for name in locks)
    (tmp_path / "plugins.toml").write_text("schema = 1\n" + made + text[text.index("[producer") :])
    program = (
        (tmp_path / "consumer.py")
        .read_text()
        .replace('{"mine": "0.1"}', '{"mine": __import__("tensorflow").__version__}')
    )
    (tmp_path / "consumer.py").write_text(program)
    words = (
        "--plugins",
        "plugins.toml",
        *(word for name in locks for word in ("--consumer", name)),
    )
    done = run(
        world,
        *words,
        "--producer",
        "mytrainer",
        "--case",
        "linear",
        SAVEDMODEL_COMPAT_HOME=str(tmp_path / "home"),
    )
    seen = results(world)
    told = {name: seen[f"linear/mytrainer@1.0/{name}@9.9.9/load"] for name in locks}
    assert done.returncode == 4, done.stdout + done.stderr
    assert {name: one["outcome"] for name, one in told.items()} == {
        "mine": "PASS", "forged": "SETUP_ERROR", "bare": "SETUP_ERROR",
    }  # fmt: skip
    assert "Hash mismatch for" in told["forged"]["message"] and right in told["forged"]["message"]
    assert "a hash" in " ".join(told["bare"]["message"].split())  # uv breaks long lines
    environments = [
        path.name.rpartition("-")[0]
        for path in (tmp_path / "home" / "environments").iterdir()
        if path.is_dir()
    ]
    assert environments == ["plugin-mine"]
