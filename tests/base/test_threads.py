"""Limits on the threads of linear algebra."""

from threadpoolctl import threadpool_info, threadpool_limits

from jigsaw_crl.base.threads import in_parallel


def blas_threads():
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


def test_linear_algebra_has_one_thread_inside_and_as_many_as_before_outside():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert in_parallel(1, blas_threads, [()]) == [{1}]
        assert blas_threads() == before
