"""How a round stands: the file `round.json`, and whether a round may be run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.files import write_text

__all__ = ["ABSENCES", "ANSWERS", "SEED", "STATUS", "RoundRecord", "Standing", "check_open", "now"]

STATUS, ANSWERS = "round.json", "answers"
# The seed of every round, so that nobody can try several and choose.
SEED = 0
# Findings about sites, which do not follow from the fragments.
ABSENCES = ("missing-site", "refused-site", "label-spelling")
State = Literal["received", "kept", "refused", "missing"]


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Standing:
    """The state of a site in a round.

    Parameters
    ----------
    state : {"received", "kept", "refused", "missing"}
        "kept": it did not answer this time, but its answer from an interrupted run of this round
        is used.
    why : str
        Why the answer was refused, or why there is none if that is known; else empty.
    """

    state: State
    why: str = ""

    @property
    def used(self) -> bool:
        """Whether the site's fragment is in the result."""
        return self.state in ("received", "kept")


@dataclass(frozen=True)
class RoundRecord:
    """The content of `round.json`.

    Parameters
    ----------
    round : str
        Name of the round.
    started_at : str
    ended_at : str or None
        None while the round runs, and if the coordinator was killed during it.
    failure : str or None
        Why there is no result; None while the round runs and if there is one.
    sites : dict of str to Standing
    """

    round: str
    started_at: str
    ended_at: str | None = None
    failure: str | None = None
    sites: dict[str, Standing] = field(default_factory=dict)

    @property
    def closed(self) -> bool:
        """Whether the round has ended with a result."""
        return self.ended_at is not None and self.failure is None

    @property
    def complete(self) -> bool:
        """Whether the result rests on every site."""
        return self.closed and all(standing.used for standing in self.sites.values())

    def to_json(self) -> str:
        return _ADAPTER.dump_json(self, indent=1).decode()

    def to_document(self) -> dict[str, Any]:
        """The record as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_document(cls, document: object) -> RoundRecord | None:
        """The record; None if this is none."""
        try:
            return _ADAPTER.validate_python(document)
        except ValidationError:
            return None

    @classmethod
    def read(cls, folder: Path) -> RoundRecord | None:
        """The record in a round's folder; None if there is none that can be read."""
        try:
            return _ADAPTER.validate_json((folder / STATUS).read_bytes())
        except (OSError, ValidationError):
            return None

    def save(self, folder: Path, *, strict: bool = False) -> None:
        """Write `round.json`.

        The state of a round is written often. By default a full disk is no reason to end the round:
        the file then keeps its last content.
        """
        with suppress(*(() if strict else (InputError,))):
            write_text(folder / STATUS, self.to_json())


_ADAPTER = TypeAdapter(RoundRecord)


def check_open(results: Path, round_name: str, *, again: bool = False) -> None:
    """Refuse a round that has a result, and a name that differs from another's only by case.

    Parameters
    ----------
    results : Path
        Folder with one folder per round.
    round_name : str
    again : bool
        Accept a round that has a result.
    """
    names = [path.name for path in results.iterdir()] if results.is_dir() else []
    for name in names:
        if name != round_name and name.casefold() == round_name.casefold():
            raise InputError(
                f"the round's name {round_name!r} differs from {name!r} only by case",
                "Choose another name.",
            )
    record = RoundRecord.read(results / round_name)
    if record is not None and record.closed and not again:
        raise InputError(
            f"the round {round_name!r} has ended on {record.ended_at} with a result",
            "Choose a new name, or pass --again to replace that result.",
        )
