"""Programs that are killed at one of the moments at which they change a directory; see
test_save_atomic.py.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

WATCHED = (
    "open",
    "os.rename",
    "os.mkdir",
    "os.remove",
    "os.rmdir",
    "os.scandir",
    "shutil.copyfile",
    "shutil.rmtree",
    "os.chmod",
)


class Killer:
    """Counts what a process does below a directory, and kills it in the act.

    Args:
      folder: the directory.
      when: number of the action, or a text that is in its path; 0 never kills.
    """

    def __init__(self, folder: Path, when: int | str):
        self.folder, self.when, self.count, self.armed = os.fspath(folder), when, 0, False
        sys.addaudithook(self.watch)

    def watch(self, event: str, arguments: tuple) -> None:
        if not self.armed or event not in WATCHED or not str(arguments[0]).startswith(self.folder):
            return
        self.count += 1
        if self.when == self.count or (
            isinstance(self.when, str)
            and self.when in f"{event} {str(arguments[0])[len(self.folder) :]}"
        ):
            os.kill(os.getpid(), signal.SIGKILL)


def write(target: Path, text: str) -> None:
    """An export without TensorFlow: a checkpoint, an asset, debug info, a model."""
    from reference_impl.format import schema
    from reference_impl.format.bundle.writer import BundleWriter
    from reference_impl.format.container.writer import LayoutWriter

    message = schema.SavedModel(saved_model_schema_version=1)
    message.meta_graphs.add().meta_info_def.tags.append(text)
    with LayoutWriter(target, replace=True) as out:
        with BundleWriter(out.checkpoint_prefix) as bundle:
            bundle.add("v", text)
        out.asset("file.txt", text.encode())
        out.debug_info(schema.GraphDebugInfo(files=[text]))
        out.saved_model(message)


def kill_everywhere(folder: Path, exchange: bool) -> None:
    """Fork once for every moment of an export over another one; print what is left each time."""
    from reference_impl.format.container import staging

    if not exchange:
        staging._exchange = lambda *_: False
    point, status = 0, -1
    while status != 0:
        point += 1
        target = folder / str(point) / "model"
        target.parent.mkdir()
        write(target, "old")
        child = os.fork()
        if child == 0:
            killer = Killer(target.parent, point)
            killer.armed = True
            write(target, "new")
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        assert status in (0, signal.SIGKILL), status
        print(content(target), leftovers(target))
        write(target, "next")
        print(content(target), leftovers(target))


def content(target: Path) -> str:
    """ "old" or "new" if everything is, else all that there is."""
    found = {
        path.relative_to(target).as_posix(): path.read_bytes()
        for path in sorted(target.rglob("*"))
        if path.is_file()
    }
    for text in (b"old", b"new", b"next"):
        if len(found) == 5 and all(
            text in data for name, data in found.items() if not name.endswith(".index")
        ):
            return text.decode()
    return f"mixture:{sorted(found)}" if found else "nothing"


def leftovers(target: Path) -> int:
    return len(list(target.parent.iterdir())) - target.exists()


def save(folder: Path, when: str) -> None:
    """A whole save by `reference_impl.save`, killed at the first action with a text in its path."""
    import tensorflow as tf

    import reference_impl

    root = tf.Module()
    root.v = tf.Variable(2.0)
    root.asset = tf.saved_model.Asset(str(folder.parent / "asset.txt"))
    killer = Killer(folder, when)
    killer.armed = True
    reference_impl.save(root, folder / "model")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    if sys.argv[1] == "save":
        save(Path(sys.argv[2]), sys.argv[3])
    else:
        kill_everywhere(Path(sys.argv[2]), sys.argv[1] == "exchange")
