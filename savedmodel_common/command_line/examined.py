"""The findings of `runtimes doctor`, as lines of text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from savedmodel_common.printable import printable

WIDE = 120  # characters of a line; longer lists have a line for each member


@dataclass(frozen=True)
class Examined:
    """Something that was looked for.

    Attributes:
      name: a program, a package, a folder, a runtime, a consumer, a server.
      says: its version and place, or why it cannot be used.
      ok: False if it cannot be used.
      command: what provides it, where that is known.
      runtime: the runtime of a consumer.
      details: further facts by name.
      needed: False for what only other commands use. If it is missing, that is not a defect.
    """

    name: str
    says: str
    ok: bool = True
    command: str = ""
    runtime: str = ""
    details: Mapping[str, Sequence[str]] = field(default_factory=dict)
    needed: bool = True

    @property
    def is_missing(self) -> bool:
        """Whether something that is needed cannot be used."""
        return self.needed and not self.ok

    def to_do(self) -> Iterator[str]:
        """Yield a line that says what to do about this one, if anything: first of all that a user
        reads.
        """
        if not self.ok:
            where = f" in {self.runtime}" if self.runtime else ""
            does = self.command or self.says
            yield printable(
                f"{'missing' if self.needed else 'optional'}: {self.name}{where}: {does}",
                newlines=False,
            )

    def lines(self) -> Iterator[str]:
        """Yield a line, and below it an indented line for each detail.

        Text from elsewhere is made safe for a terminal.
        """
        margin = "  " if self.runtime else ""
        yield printable(f"{margin}{self.name}: {self.says}", newlines=False)
        if self.command:
            yield printable(f"{margin}  to provide it: {self.command}", newlines=False)
        for name, values in self.details.items():
            joined = ", ".join(values)
            for text in (joined,) if len(joined) <= WIDE else values:
                yield printable(f"{margin}  {name}: {text}", newlines=False)

    def to_json(self) -> dict[str, Any]:
        details = {name: list(values) for name, values in self.details.items()}
        return {**vars(self), "details": details}
