"""An image of a server: whether it is here, and what ``--version`` says in it.

Nothing is ever pulled.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from contextlib import suppress
from typing import Any

from compat_matrix.runtimes import places
from savedmodel_common import interrupts
from savedmodel_common.writing import write_text
from savedmodel_standin import LABEL, REPOSITORY

from .base import SERVING, STANDIN, EngineTrouble, NotHere, ServerIdentity, read_version
from .engine import asked, created

BUILD_STANDIN = "python -m savedmodel_servers.commands.standin_image"
VERSION_LIMIT = 120  # seconds for `--version`


def find(client: Any, name: str) -> Any:
    """Return the image with a name, tag, digest or id.

    Raises NotHere with the command that fetches it.
    """
    from docker.errors import ImageNotFound

    try:
        with asked(f"image {name}"):
            try:
                return client.images.get(name)
            except ImageNotFound:
                raise _absent(client, name) from None
    except EngineTrouble as trouble:
        if trouble.passing:
            raise
        # An invalid name is answered with "invalid reference format".
        raise NotHere(str(trouble), f"docker image inspect {name}") from None


def _absent(client: Any, name: str) -> NotHere:
    if name.partition(":")[0].rpartition("/")[2] == REPOSITORY:
        return NotHere(f"the stand-in's image {name} is not built", BUILD_STANDIN)
    here = tags(client, name=name.partition("@")[0].partition(":")[0])
    others = f"; here are {', '.join(here[:5])}" if here else ""
    return NotHere(f"the image {name} is not here{others}", f"docker pull {name}")


def tags(client: Any, **selected: Any) -> list[str]:
    """Return the tags of the images that the engine lists for ``selected``, sorted.

    Example: ``tags(client, name="tensorflow/serving")``.
    """
    found: list[str] = []
    for image in client.images.list(**selected):
        found += image.tags
    return sorted(found)


def standin(client: Any) -> str:
    """Return the newest image of the stand-in. Raises NotHere."""
    with asked("images of the stand-in"):
        found = client.images.list(filters={"label": LABEL})
    tagged = [image for image in found if image.tags]
    if not tagged:
        raise NotHere("no image of the stand-in is built", BUILD_STANDIN)
    return str(max(tagged, key=lambda image: str(image.attrs.get("Created", ""))).tags[0])


def identify(client: Any, image: Any, name: str, labels: dict[str, str]) -> ServerIdentity:
    """Identify the server of an image.

    ``--version`` runs once per image and is remembered. Raises NotHere, EngineTrouble.
    """
    remembered = _remembered(image.id)
    output = remembered or _ask(client, image, labels)
    version, lines = read_version(output)
    if not lines:
        said = " ".join(output.split())[:200]
        raise NotHere(
            f"{name} is not an image of TensorFlow Serving: --version says {said!r}",
            "docker pull tensorflow/serving",
        )
    if remembered is None:
        _remember(image.id, output)
    label = (image.labels or {}).get(LABEL)
    # By its label, or by its own words: a stand-in never fills a cell of the real server.
    kind = STANDIN if label is not None or "standin" in "".join(lines.values()) else SERVING
    return ServerIdentity(
        kind, version, image=name, digest=_digest(image, name), details={"id": image.id, **lines}
    )


def _digest(image: Any, name: str) -> str:
    """Return the digest of the image in a registry, or its id if it is in none."""
    known = [str(one) for one in image.attrs.get("RepoDigests") or []]
    repository = name.partition("@")[0].rpartition(":")[0] or name
    return next(
        (one for one in known if one.partition("@")[0] == repository),
        known[0] if known else str(image.id),
    )


def _ask(client: Any, image: Any, labels: dict[str, str]) -> str:
    name = f"savedmodel-compat-version-{uuid.uuid4().hex[:12]}"
    with asked(f"{image.id} --version"):
        bare: dict[str, Any] = {
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
        }
        container = created(client, image.id, ["--version"], name, labels=labels, **bare)
        try:
            interrupts.check()
            container.start()
            container.wait(timeout=VERSION_LIMIT)
            return str(container.logs().decode("utf-8", "replace"))
        finally:
            container.remove(force=True, v=True)


def _place(image_id: str) -> Any:
    return (
        places.home()
        / "serving"
        / "images"
        / f"{hashlib.sha256(image_id.encode()).hexdigest()[:32]}.json"
    )


def _remembered(image_id: str) -> str | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        told = json.loads(_place(image_id).read_text(encoding="utf-8"))
        return str(told["output"]) if told["image"] == image_id else None
    return None


def _remember(image_id: str, output: str) -> None:
    with suppress(OSError):  # asked again next time
        place = _place(image_id)
        place.parent.mkdir(parents=True, exist_ok=True)
        write_text(place, json.dumps({"image": image_id, "output": output}))
