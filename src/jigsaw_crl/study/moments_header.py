"""The header of a moments file: JSON text with everything but the arrays.

Imported only where such a file is read or written, because pydantic takes time to load.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from jigsaw_crl.base.documents import Closed, Document, Number, WholeNumber

__all__ = ["MomentsHeader", "RegimeHeader"]

_Name = Annotated[str, Field(min_length=1)]
_Count = Annotated[WholeNumber, Field(ge=1, lt=2**53)]
_Factor = Annotated[Number, Field(ge=1)]


class RegimeHeader(Closed):
    """Numbers of rows of one regime, and what its moments count for.

    Parameters
    ----------
    n : int or None
        Rows, less one for every batch but the first; None for exact moments.
    factors : (float, float) or None
        How many times more the mean and the covariance vary than those of independent Gaussian
        rows.
    groups : int or None
        Groups that the rows are of.
    incomplete : (int, int, float) or None
        All rows, those with missing values, and the factor by which these make the mean vary
        more. `n` is then the number of complete rows that they count for.
    batches : dict of str to int
        Rows of each batch.
    """

    n: _Count | None
    factors: tuple[_Factor, _Factor] | None = None
    groups: _Count | None = None
    incomplete: tuple[_Count, _Count, _Factor] | None = None
    batches: dict[_Name, _Count] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        n, batches = self.n or 0, self.batches.values()
        if batches and n != sum(batches) - len(batches) + 1:
            raise ValueError("the rows of batches do not add up to those of their regime")
        rows = max(n, sum(batches))
        if self.incomplete is not None:
            rows, gaps, _ = self.incomplete
            if not n <= rows or gaps > rows:
                raise ValueError("the rows with missing values do not fit the rows")
        if self.groups is not None and self.groups > rows:
            raise ValueError("there are more groups than rows")
        return self


class MomentsHeader(Document):
    """What a moments file says beside its arrays.

    Parameters
    ----------
    labels : list of str
        The label of each regime but the control; a label of several strengths occurs several
        times.
    regimes : list of RegimeHeader
        The control, then one for each of `labels`.
    parts : list of int
        Rows of consecutive stretches of the control.
    columns, leading : list of str and int, optional
        Of a wide table: the columns that its directions replace, and the number of leading ones.
    """

    kind = "moments file"
    remedy = "Write the file again with `jigsaw moments`."

    format: Literal["jigsaw-crl/moments"]
    version: Literal[1]
    written_by: str
    client: _Name
    control: _Name
    labels: Annotated[list[str], Field(min_length=1)]
    features: Annotated[list[str], Field(min_length=1)]
    n_latent: WholeNumber
    hard: list[str] = Field(default_factory=list)
    trimmed: bool = False
    regimes: list[RegimeHeader]
    parts: list[_Count] = Field(default_factory=list)
    columns: list[str] | None = None
    leading: WholeNumber | None = None

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if len(self.regimes) != 1 + len(self.labels):
            raise ValueError("it needs one regime for the control and one for each of its labels")
        if not set(self.hard) <= set(self.labels):
            raise ValueError("'hard' names a label that it does not have")
        if self.columns is not None and (
            len(set(self.columns)) < max(len(self.columns), len(self.features))
            or not 1 <= (self.leading or 0) <= len(self.features)
        ):
            raise ValueError("'columns' and 'leading' do not fit the directions")
        return self
