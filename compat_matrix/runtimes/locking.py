"""Write the lock of a runtime: exact versions with hashes, for the platform of the registry."""

from __future__ import annotations

from compat_matrix.runtimes import interpreters, registry, uv
from compat_matrix.runtimes.places import RuntimeTrouble


class LockRefused(RuntimeTrouble):
    """Raised for a lock that this command must not write."""


def lock(stanza: registry.Stanza, known: registry.Registry, upgrade: bool = False) -> bool:
    """Write the lock of a runtime; return whether it changed.

    Existing pins stay unless ``upgrade`` is set or they conflict.

    Raises :class:`LockRefused` for a lock outside the registry's folder, because fixtures cite it
    by its hash. Raises UvTrouble.
    """
    if known.path.parent not in stanza.lock.parents:
        raise LockRefused(
            f"{stanza.name}: {stanza.lock.name} is cited by committed fixtures; it stays as it is"
        )
    old = stanza.lock.read_text(encoding="utf-8") if stanza.lock.exists() else ""
    stanza.lock.parent.mkdir(parents=True, exist_ok=True)
    fresh = stanza.lock.with_suffix(".tmp")
    fresh.write_text("" if upgrade else old, encoding="utf-8")
    try:
        python = ["--python", interpreters.find(stanza.python), "--python-version", stanza.python]
        target = ["--python-platform", known.platform, "--output-file", str(fresh)]
        form = ["--quiet", "--generate-hashes", "--no-header", "--no-annotate"]
        uv.run(
            ["pip", "compile", *form, *python, *target, "-"],
            "\n".join(known.locked_requirements(stanza)),
        )
        changed = fresh.read_text(encoding="utf-8") != old
        fresh.replace(stanza.lock)
    finally:
        fresh.unlink(missing_ok=True)
    return changed
