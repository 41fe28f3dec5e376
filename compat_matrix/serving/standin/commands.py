"""``executable`` and ``build`` on the command line."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from compat_matrix.common.extras import install
from compat_matrix.runtimes import resolve
from compat_matrix.runtimes.places import RuntimeTrouble
from compat_matrix.runtimes.runtime import LOCAL
from compat_matrix.serving.standin import executable as launcher
from compat_matrix.serving.standin import image, rootfs

PROGRAM = "python -m compat_matrix.serving.standin"


def executable(arguments: Sequence[str]) -> int:
    """Write a ``tensorflow_model_server`` that starts the stand-in in a runtime."""
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} executable", description=executable.__doc__)
    parser.add_argument("path", type=Path, help="the file to write")
    parser.add_argument("--runtime", default=LOCAL, help="whose TensorFlow serves: a version, a requirement, an interpreter")
    options = parser.parse_args(arguments)
    try:
        python = resolve.resolve(options.runtime).python
    except RuntimeTrouble as error:
        sys.stderr.write(f"{error}\n")
        return 1
    launcher.write(options.path, str(python))
    print(options.path)
    return 0


def build(arguments: Sequence[str]) -> int:
    """Make the container image, or write its root file system into a folder."""
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} build", description=build.__doc__)
    parser.add_argument("--runtime", default=LOCAL, help="whose TensorFlow is inside: a version, a requirement, an interpreter")
    parser.add_argument("--tag", help=f"name and tag of the image; default: {image.NAME}:VERSION")
    parser.add_argument("--root", type=Path, metavar="DIR", help="write the files there; no container engine is asked")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    try:
        if options.root is not None:
            with tempfile.TemporaryDirectory() as scratch:
                tree = rootfs.gather(resolve.resolve(options.runtime).python, Path(scratch))
                tree.write(options.root)
            print(options.root)
            return 0
        docker = importlib.import_module("docker")
        client = docker.from_env()
        identity = image.build(client, options.tag, options.runtime)
    except ImportError:
        sys.stderr.write(f"the Python package docker is not installed: {install('serving')}\n")
        return 1
    except (RuntimeTrouble, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    built = client.images.get(identity)
    size = built.attrs["Size"] / 1e6
    print(f"{identity} {' '.join(built.tags)} {size:.0f} MB, {time.monotonic() - started:.1f} s")
    return 0
