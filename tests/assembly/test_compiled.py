"""Compiled functions without a cache on disk."""

import pytest

from jigsaw_crl.assembly.posterior.moves import compiled

from ..processes import python


@pytest.mark.slow
def test_small_studies_do_not_load_the_compiler(tmp_path):
    code = (
        "import sys\n"
        "import jigsaw_crl as jc\n"
        "from jigsaw_crl.cli import main\n"
        "world = jc.simulate.setting('A', seed=0)\n"
        "for clients in (world.clients(), world.clients(5000),"
        " jc.simulate.random_world(20, 6, 0.5, seed=0).clients()):\n"
        "    jc.recover(list(clients))\n"
        "jc.recover_fragment(jc.simulate.random_world(30, 1, 1.0, seed=51_400).client(0, 5_000))\n"
        "sys.argv[1:] = ['demo', '--out', 'demo']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "sys.exit('numba' in sys.modules)"
    )
    done = python("-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_functions_are_compiled_even_if_they_cannot_be_cached():
    import numba

    # numba cannot cache a function that comes from no file.
    namespace: dict = {}
    exec("def half(x):\n    return x / 2", namespace)
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(namespace["half"])
    half = compiled(namespace["half"])
    assert half(3.0) == 1.5
    assert half.signatures  # it was compiled, not interpreted
