"""Limits on the threads of linear algebra."""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from jigsaw_crl.base.threads import allowed_threads, one_thread


def test_one_thread_holds_inside_and_is_undone_outside():
    with threadpool_limits(2, user_api="blas"):
        before = allowed_threads()
        with one_thread():
            assert allowed_threads() == 1
        assert allowed_threads() == before
