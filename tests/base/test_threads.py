"""Limits on the threads of linear algebra."""

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from jigsaw_crl.base.errors import InputError
from jigsaw_crl.base.threads import in_parallel


def blas_threads():
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


def test_linear_algebra_has_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert in_parallel(1, blas_threads, [()]) == [{1}]
        assert blas_threads() == before


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, "two", None, True])
def test_a_number_of_jobs_that_is_none_is_refused_before_any_work(n_jobs):
    done = []
    with pytest.raises(InputError, match="n_jobs is"):
        in_parallel(n_jobs, done.append, [(1,), (2,)])
    assert not done
