"""Limits on the threads of linear algebra."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.threads import allowed_threads, in_parallel, one_thread


def test_one_thread_holds_inside_and_is_undone_outside():
    with threadpool_limits(2, user_api="blas"):
        before = allowed_threads()
        with one_thread():
            assert allowed_threads() == 1
        assert allowed_threads() == before


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, "two", None, True])
def test_a_number_of_jobs_that_is_none_is_refused_before_any_work(n_jobs):
    done = []
    with pytest.raises(InputError, match="n_jobs is"):
        in_parallel(n_jobs, done.append, [(1,), (2,)])
    assert not done
