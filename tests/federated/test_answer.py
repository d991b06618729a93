"""What a site answers, and which answers the coordinator accepts."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.federated.answer import WHY_NOT, Answer, Rules, check_answer, make_answer
from jigsaw_crl.federated.disclosure import size_bound
from jigsaw_crl.federated.seen import LastUsed, Seen
from jigsaw_crl.federated.settings import SiteSettings
from jigsaw_crl.fragment.fragment import Fragment
from jigsaw_crl.fragment.signing import read_private_key, sign_fragment

from ..fragment.examples import assert_one_line, fragments, mutations

SITE = "client-1"


def rules(**changes):
    given = {"round_name": "first", "seen": Seen(Path("seen.json"), {}), "most_bytes": 10**6}
    return Rules(**given | changes)


@pytest.fixture(scope="module")
def piece():
    return fragments_of_one_site()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A site's file, which tests write over."""
    return tmp_path_factory.mktemp("site") / "fragment.json"


def answer_with(file, text, **settings):
    """The answer of a site whose file holds this text."""
    file.write_text(text, encoding="utf-8")
    return make_answer(SiteSettings(fragment=file, **settings), SITE, "first")
