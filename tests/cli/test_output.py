"""Tables for people."""

from __future__ import annotations

from dataclasses import replace

from jigsaw_crl.base.findings import Finding
from jigsaw_crl.cli.output import print_findings


def test_the_same_finding_about_several_clients_is_one_line(capsys):
    one = Finding("ignored-column", "info", "the column 'time' is text", "Nothing.", client="a")
    other = Finding(
        "outliers", "error", "a few rows", "Look.", value=2.0, client="b", regime="pump"
    )
    print_findings([*(replace(one, client=c) for c in "abcdefgh"), other, replace(one, value=3.0)])
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [line[1] for line in lines] == ["b/pump", "a, b, c, d, e, f and 2 more", "a"]
    assert [line[0] for line in lines] == ["error", "info", "info"]
