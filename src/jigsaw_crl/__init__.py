"""jigsaw-crl: one causal order from many partial, mixed, private views of a hidden system.

The public names are listed in `__init__.pyi` and loaded on first use, so that `import jigsaw_crl`
takes milliseconds.
"""

from __future__ import annotations

import lazy_loader

from jigsaw_crl._version import __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
