"""Fragment files of several clients."""

import json

import pytest

from jigsaw_crl import save_fragment
from jigsaw_crl.base.errors import InputError
from jigsaw_crl.fragment.reading import fragments_by_client, read_fragment, read_fragment_files

from .examples import document, fragment


def test_two_fragments_of_one_client_are_refused(tmp_path):
    paths = [save_fragment(fragment(), tmp_path / name) for name in ("a.json", "b.json")]
    with pytest.raises(InputError, match=r"b\.json', client 'lab-1': another file"):
        read_fragment_files(paths)


def test_labels_that_differ_only_in_spelling_are_one_with_a_note_and_refused_if_signed(tmp_path):
    paths = []
    for client, label in (("lab-1", "Pump"), ("lab-2", "pump")):
        paths.append(tmp_path / f"{client}.json")
        paths[-1].write_text(json.dumps(document(client=client, labels=["a", "b", "c", label])))
    first, second = read_fragment_files(paths).values()
    assert first.labels == second.labels == ("a", "b", "c", "Pump")
    assert second.findings[-1].check == "label-spelling"
    assert "'pump' is taken as 'Pump'" in second.findings[-1].message
    pieces = [(path, read_fragment(path)) for path in paths]
    with pytest.raises(InputError, match="'pump' of lab-2 is 'Pump'"):
        fragments_by_client(pieces, signed=True)


def test_a_file_larger_than_any_fragment_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)  # a hole: it takes no space on the disk
    with pytest.raises(InputError, match="larger than any fragment"):
        read_fragment_files([path])
