"""Methods of a type whose work is done by a package above it.

`order._repr_html_()` draws with `report`, and `Client.from_table` reads with `study`, although both
packages are built on these types. The method itself, with its signature and docstring, stands in
the class; `LATE_METHODS` names the function that does the work. Its module is imported on first
use, so that nothing imports upwards and nobody loads a plotting library to print an order.
"""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

__all__ = ["LATE_METHODS", "late_method"]

LATE_METHODS = {
    "client.from_table": "jigsaw_crl.study.reading:client_from_table",
    "fragment.html": "jigsaw_crl.report.writing:fragment_html",
    "order.html": "jigsaw_crl.report.writing:order_html",
    "result.add": "jigsaw_crl.adding:add_sites",
    "result.remove": "jigsaw_crl.adding:remove_sites",
    "result.html": "jigsaw_crl.report.writing:result_html",
    "page.html": "jigsaw_crl.report.writing:render_report",
    "result.report": "jigsaw_crl.report.writing:write_report",
}
"""Method to function: the class and method, and `module:function` of the package above."""


def late_method(name: str) -> Callable[..., Any]:
    """The function behind a method, by its key in `LATE_METHODS`."""
    function: Callable[..., Any] = resolve_name(LATE_METHODS[name])
    return function
