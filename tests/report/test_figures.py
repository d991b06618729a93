"""Static figures, notebook and terminal views."""

from __future__ import annotations

import io

import matplotlib
import numpy as np
import pytest
from rich.console import Console

import jigsaw_crl as jc
from jigsaw_crl.cli import app as cli
from jigsaw_crl.report.drawing import draw_hasse, draw_piece
from jigsaw_crl.report.figures import write_figures
from jigsaw_crl.report.terminal import print_certificate, print_result

from .studies import HOSTILE, assembled, chain_fragment


@pytest.mark.slow
def test_the_command_writes_every_figure_as_svg_and_pdf(tunnel, folder, tmp_path, capsys):
    assert cli.run(["report", str(folder(tunnel)), "--figures", str(tmp_path / "figures")]) == 0
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    kinds = ("hasse", "pairs", "calibration", "spectrum")
    assert names == {f"{kind}.{ending}" for kind in kinds for ending in ("svg", "pdf")}
    svg = (tmp_path / "figures" / "hasse.svg").read_text()
    assert all(f">{label}<" in svg for label in tunnel.order.labels)
    assert (tmp_path / "figures" / "pairs.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_the_same_result_gives_the_same_figures(tunnel, tmp_path):
    one, two = (write_figures(tunnel, tmp_path / name) for name in ("one", "two"))
    assert [a.read_bytes() for a in one] == [b.read_bytes() for b in two]


def test_figures_leave_no_figure_open(tunnel):
    import matplotlib.pyplot as plt

    tunnel.plot_hasse()
    assert plt.get_fignums() == []
    assert matplotlib.rcParams["svg.fonttype"] == matplotlib.rcParamsDefault["svg.fonttype"]


def test_figures_draw_into_given_axes(tunnel):
    from matplotlib.figure import Figure

    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert tunnel.plot_hasse(left) is figure
    assert tunnel.plot_calibration(ax=right) is figure
    assert len(left.texts) == 5


@pytest.mark.slow
def test_hostile_labels_are_drawn_literally(hostile, tmp_path):
    written = write_figures(hostile, tmp_path)
    assert all(path.stat().st_size for path in written)
    assert "<script>window" not in (tmp_path / "hasse.svg").read_text()


def test_a_result_without_data_has_no_spectrum():
    with pytest.raises(jc.InputError, match="no spectra"):
        assembled(chain_fragment("one", "a", "b")).plot_spectrum()


def test_calibration_of_a_certain_and_right_order_lies_in_the_corners():
    result = assembled(chain_fragment("one", "a", "b", "c"))
    ax = result.plot_calibration([("a", "b"), ("b", "c"), ("a", "c")]).axes[0]
    marks = [line.get_xydata().tolist()[0] for line in ax.lines if line.get_marker() == "o"]
    assert marks == [[0.0, 0.0], [1.0, 1.0]]


def test_clients_are_held_against_the_verdict_on_their_own_pairs():
    # The client lists its labels against the alphabet, and knows its chain for certain.
    ax = assembled(chain_fragment("one", "c", "a", "b")).plot_calibration().axes[0]
    marks = [line.get_xydata().tolist()[0] for line in ax.lines if line.get_marker() == "o"]
    assert np.allclose(marks, [[0.0, 0.0], [1.0, 1.0]])


def test_frames_surround_their_members(tunnel):
    for fragment in tunnel.fragments.values():
        picture = draw_piece(fragment)
        chips = {chip.label: chip for chip in picture.chips}
        assert set(chips) == set(fragment.labels)
        for frame in picture.outlines:
            for label in fragment.labels:
                chip = chips[label]
                inside = (
                    frame.x < chip.x
                    and chip.x + chip.width < frame.x + frame.width
                    and frame.y < chip.y
                    and chip.y + chip.height < frame.y + frame.height
                )
                assert inside == (label in frame.members)
        framed = {o.members for o in picture.outlines if o.kind == "block"}
        assert framed == {tuple(sorted(b)) for b in fragment.blocks if len(b) > 1}


def test_the_diagram_has_the_edges_of_the_hasse_diagram(middling):
    picture = draw_hasse(middling.order)
    drawn = {(e.ancestor, e.descendant) for e in picture.edges}
    assert drawn == set(middling.order.hasse().edges)


def test_notebooks_show_escaped_html(tunnel, hostile):
    html = tunnel._repr_html_()
    assert "<svg" in html
    assert all(label in html for label in tunnel.order.labels)
    for shown in (hostile._repr_html_(), hostile.order._repr_html_()):
        assert "<script" not in shown
        assert "<img" not in shown
    fragment = next(iter(hostile.fragments.values()))
    assert "<script" not in fragment._repr_html_()


def test_large_orders_are_not_drawn_in_notebooks():
    labels = [f"z{i:03d}" for i in range(130)]
    result = assembled(chain_fragment("one", *labels))
    assert "write the report" in result.order._repr_html_()


def test_the_terminal_names_every_label_and_what_is_below_it(tunnel):
    console = Console(file=io.StringIO(), width=200)
    print_result(tunnel, console)
    text = console.file.getvalue()
    for client in tunnel.fragments:
        assert client in text
    lines = {line.split()[0]: line for line in text.splitlines() if "→" in line}
    for a, d in tunnel.order.hasse().edges:
        assert d in lines[a]


def test_the_terminal_prints_labels_and_certificates_literally():
    console = Console(file=io.StringIO(), width=1000, markup=True)
    result = assembled(chain_fragment("[red]one[/red]", "[bold]a", HOSTILE[0], "b"))
    print_result(result, console)
    print_certificate(result.order.explain("[bold]a", "b"), console)
    text = console.file.getvalue()
    assert "[bold]a" in text
    assert "[red]one[/red]" in text
    assert str(result.order.explain("[bold]a", "b")) in text
