"""The fields of `study.toml` and their types.

Imported only where a manifest is read, because pydantic takes time to load.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from jigsaw_crl.base.documents import Number, WholeNumber
from jigsaw_crl.moments.trimming import MOST_TRIMMED

__all__ = ["ManifestFields"]

_Kind = Literal["soft", "hard"]
# A single text stands for a list of one.
_Texts = Annotated[list[str], BeforeValidator(lambda x: [x] if isinstance(x, str) else x)]


class _Common(BaseModel):
    """Fields that stand above all tables or in that of a client."""

    # A number where a text is expected is that text: regimes are often numbers.
    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    regime: str = ""
    control: str = ""
    batch: str = ""
    group: str = ""
    trim: Annotated[Number, Field(ge=0, le=MOST_TRIMMED)] = 0.0
    missing: Literal["refuse", "drop", "em"] = "refuse"
    na: _Texts = Field(default_factory=list)
    ignore: _Texts = Field(default_factory=list)
    rename: dict[str, str] = Field(default_factory=dict)
    interventions: _Kind | dict[str, _Kind] = "soft"


class _ClientFields(_Common):
    file: str = ""
    n_latent: WholeNumber = 0


class ManifestFields(_Common):
    """Everything in a manifest; `[knowledge]` is checked by `Knowledge.from_document`."""

    name: str = ""
    labels: _Texts = Field(default_factory=list)
    clients: dict[str, _ClientFields] = Field(default_factory=dict)
    knowledge: dict[str, Any] = Field(default_factory=dict)
