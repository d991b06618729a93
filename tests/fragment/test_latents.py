"""Rows to latents: centred, by column name, with labelled output."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import jigsaw_crl as jc

from ..study.tables import frame_of

SENSORS = [f"sensor {i}" for i in range(8)]


@pytest.fixture(scope="module")
def lab():
    """A client whose sensors have an offset, and its control rows."""
    regimes = jc.simulate.setting("A", 0).sample(0, 500).regimes
    frame = frame_of({name: x + 7 for name, x in regimes.items()})
    frame.columns = [*SENSORS, "regime"]
    client = jc.Client.from_table(frame, name="lab-1")
    return jc.recover_fragment(client), frame[frame.regime == "control"][SENSORS]


def test_latents_of_control_rows_have_mean_zero(lab):
    fragment, control = lab
    z = fragment.transform(control.to_numpy())
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(z, (control.to_numpy() - fragment.centre) @ fragment.basis.T)
    for rows in (control.to_numpy()[:, :5], control.to_numpy()[0]):
        with pytest.raises(jc.InputError, match="8 features"):
            fragment.transform(rows)
    with pytest.raises(jc.InputError, match="stays at the client"):
        jc.Fragment.from_json(fragment.to_json()).transform(control)


def test_a_frame_gives_a_frame_of_its_kind_with_a_column_per_label(lab):
    fragment, control = lab
    z = fragment.transform(control.to_numpy())
    shifted = control.set_axis(range(100, 600))
    out = fragment.transform(shifted)
    assert tuple(out.columns) == fragment.labels
    assert out.index.equals(shifted.index)
    np.testing.assert_array_equal(out.to_numpy(), z)
    other = fragment.transform(pl.from_pandas(control))
    assert isinstance(other, pl.DataFrame)
    assert tuple(other.columns) == fragment.labels
    arrow = fragment.transform(pa.Table.from_pandas(control, preserve_index=False))
    assert isinstance(arrow, pa.Table)
    np.testing.assert_array_equal(other.to_numpy(), z)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: x.rename(columns={"sensor 3": "sensor3"}), "Did you mean 'sensor3'"),
        (lambda x: x.drop(columns=["sensor 0"]), "columns of the client are missing: sensor 0"),
    ],
)
def test_missing_columns_are_refused(lab, change, says):
    fragment, control = lab
    with pytest.raises(jc.InputError, match=says):
        fragment.transform(change(control))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_columns_are_found_by_name(lab, kind):
    fragment, control = lab
    turned = kind(control[SENSORS[::-1]].assign(regime="control"))
    out = np.array(fragment.transform(turned))
    np.testing.assert_array_equal(out, fragment.transform(control.to_numpy()))


def test_text_is_refused_in_one_line(lab):
    fragment, control = lab
    with pytest.raises(jc.InputError, match="not numbers"):
        fragment.transform(control.astype(str).replace({r".*": "x"}, regex=True))
