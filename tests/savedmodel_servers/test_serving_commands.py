"""The commands ``runtimes doctor --server`` and ``standin_image`` without an engine."""

from __future__ import annotations

from types import SimpleNamespace

from click.testing import CliRunner
from serving_drivers_fixtures import home, no_engine, sdk

from compat_matrix.runtimes import places
from savedmodel_compat import cli
from savedmodel_servers.commands import standin_image
from savedmodel_servers.drivers import engine

__all__ = ["home", "no_engine", "sdk"]  # fixtures, imported by name


def test_doctor_without_an_engine(no_engine):
    result = CliRunner().invoke(cli.main, ["runtimes", "doctor", "--serving"])
    assert result.exit_code == 1
    assert "missing: engine: " in result.output
    assert "docker info" in result.output
    assert (
        CliRunner().invoke(cli.main, ["runtimes", "doctor", "--server", "remote:x"]).exit_code == 64
    )


def test_an_engine_that_nobody_asked_for_is_optional(no_engine, monkeypatch):
    monkeypatch.setattr("compat_matrix.commands.parts.runtimes_doctor.CONSUMERS", {})
    result = CliRunner().invoke(cli.main, ["runtimes", "doctor"])
    assert result.exit_code == 0 and "optional: engine: " in result.output, result.output


def test_image_is_built_by_the_command(sdk, monkeypatch):
    from savedmodel_standin import image

    asked: list[tuple[str | None, str]] = []

    def build(client, tag, runtime):
        asked.append((tag, runtime))
        if runtime == "nothing":
            raise places.UnknownRuntime("nothing is no runtime")
        return "sha256:1"

    images_of = SimpleNamespace(get=lambda number: SimpleNamespace(tags=["mine:1"]))
    monkeypatch.setattr(
        engine, "connect", lambda: SimpleNamespace(images=images_of, close=lambda: None)
    )
    monkeypatch.setattr(image, "build", build)
    done = CliRunner().invoke(standin_image.image, ["2.20", "--tag", "mine:1"])
    assert (done.exit_code, done.output) == (0, "mine:1: sha256:1\n")
    assert CliRunner().invoke(standin_image.image, []).exit_code == 0
    assert asked == [("mine:1", "2.20"), (None, "local")]
    assert CliRunner().invoke(standin_image.image, ["nothing"]).exit_code == 64


def test_image_without_an_engine(no_engine):
    done = CliRunner().invoke(standin_image.image, [])
    assert done.exit_code == 4 and "docker info" in done.stderr


def test_a_stand_in_that_cannot_be_built_is_one_line(sdk, monkeypatch, tmp_path):
    from savedmodel_standin import image, rootfs

    def build(client):
        raise rootfs.NoImage(
            "python cannot run the stand-in: ImportError: no package called tensorflow"
        )

    monkeypatch.setattr(engine, "connect", lambda: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(image, "build", build)
    done = CliRunner().invoke(
        cli.main,
        ["matrix", "run", "--servers-only", "--server", "standin", "--out", str(tmp_path / "out")],
    )
    assert done.exit_code == 4 and "ImportError: no package called tensorflow" in done.stderr
    assert "Traceback" not in done.output
