"""Control terms: each file of this folder is one term, and registers it by name."""

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f'{__name__}.{_module.name}')
