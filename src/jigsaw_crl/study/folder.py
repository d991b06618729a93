"""A study: clients whose labels have the same meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.findings import Finding, spelling_notes
from jigsaw_crl.base.frozen import FrozenMapping
from jigsaw_crl.base.knowledge import NOTHING, Knowledge
from jigsaw_crl.base.labels import respelt
from jigsaw_crl.base.text import did_you_mean, pluralise
from jigsaw_crl.client.checks import Kinds, check_named
from jigsaw_crl.client.client import Client


@dataclass(frozen=True, eq=False)
class Study:
    """Clients whose labels have the same meaning.

    Parameters
    ----------
    name : str
    clients : tuple of Client
    findings : tuple of Finding
        From reading the files.
    sources : mapping of str to str
        The file each client was read from.
    fingerprints : mapping of str to str
        SHA-256 of those files, where they are single files of at most 256 MB.
    knowledge : Knowledge
        What is known before the data: ``[knowledge]`` in `study.toml`.

    Examples
    --------
    >>> import jigsaw_crl as jc
    >>> study = jc.Study("settled", tuple(jc.simulate.setting("A", 0).clients()))
    >>> len(study), study.labels[:2]
    (5, ('z1', 'z2'))
    """

    name: str
    clients: tuple[Client, ...]
    findings: tuple[Finding, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    knowledge: Knowledge = NOTHING

    def __post_init__(self) -> None:
        object.__setattr__(self, "clients", tuple(self.clients))
        object.__setattr__(self, "sources", FrozenMapping(self.sources))
        object.__setattr__(self, "fingerprints", FrozenMapping(self.fingerprints))
        if not self.clients:
            raise InputError("the study has no clients", "Add at least one client.")
        names, several = dict[str, str](), len(self.clients) > 1
        # Within one client, labels differ by more than their spelling.
        others = respelt(client.labels for client in self.clients) if several else [{}]
        clients, findings = list(self.clients), list(self.findings)
        for i, (client, other) in enumerate(zip(self.clients, others, strict=True)):
            key = client.name.strip().casefold()
            if key in names:
                what = f"two clients are called {names[key]!r} and {client.name!r}"
                raise InputError(what, "Give each client a name of its own.", client=client.name)
            names[key] = client.name
            if other:
                clients[i] = client.relabelled(other)
                findings += spelling_notes(other, client.name)
        object.__setattr__(self, "clients", tuple(clients))
        object.__setattr__(self, "findings", tuple(findings))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all clients, sorted."""
        return tuple(sorted({label for client in self.clients for label in client.labels}))

    def with_interventions(self, kinds: Kinds) -> Study:
        """The study with the user's word on which interventions are hard.

        Parameters
        ----------
        kinds : {"soft", "hard"} or mapping of label to one of these
            As for `Client.with_interventions`; a label that no client has is refused.
        """
        check_named(kinds, self.labels, "no client has")
        clients = tuple(client.with_interventions(kinds) for client in self.clients)
        return replace(self, clients=clients)

    def __iter__(self) -> Iterator[Client]:
        return iter(self.clients)

    def __len__(self) -> int:
        return len(self.clients)

    def __getitem__(self, name: str) -> Client:
        for client in self.clients:
            if client.name == name:
                return client
        known = ", ".join(c.name for c in self.clients[:8])
        near = did_you_mean(name, [c.name for c in self.clients])
        raise InputError(f"the study has no client {name!r}", f"It has {known}. {near}".strip())

    def __repr__(self) -> str:
        sizes = pluralise(len(self.clients), "client"), pluralise(len(self.labels), "label")
        return f"Study({self.name!r}: {', '.join(sizes)})"
