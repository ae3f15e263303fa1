"""Modules that are loaded when they are first used, so that programs start fast."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any

RARELY_NEEDED = "scipy.stats", "scipy.special", "scipy.spatial", "numpy.f2py", "pandas"


def attributes(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package whose names live in the modules that are given.

    >>> attributes("importlib", {"files": "resources"})("files").__module__
    'importlib.resources._common'
    """

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return __getattr__


def postpone(*names: str) -> None:
    """Let modules be loaded when a name in them is first asked for, not when they are imported.

    For programs of our own, by default what scikit-learn imports wherever it is installed, and
    rarely needs: most of the time that it takes to start is spent on that.
    (`importlib.util.LazyLoader` loads a module as soon as a second module imports it.)
    """
    for name in names or RARELY_NEEDED:
        if name not in sys.modules:
            sys.meta_path.insert(0, _Finder(name))


class _Finder:
    """Finds one module, and nothing else."""

    def __init__(self, name: str):
        self._name = name

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        """Find the module as it is always found, but for what loads it.

        Where a part of it is imported, it is needed itself.
        """
        whole = sys.modules.get(self._name)
        if name.startswith(f"{self._name}.") and isinstance(whole, _Postponed):
            _load(whole)
            _load_once(sys.modules.get(name))
        spec = PathFinder.find_spec(name, path, target) if name == self._name else None
        if spec is None or spec.loader is None:
            return None
        spec.loader = _Loader(spec.loader)
        return spec


class _Loader(Loader):
    """Leaves the loading to a module's first use."""

    def __init__(self, loader: Loader):
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> None:
        """Take a module of the usual kind."""

    def exec_module(self, module: ModuleType) -> None:
        """Make it one that loads itself."""
        module.__dict__["__lock"] = RLock()
        module.__class__ = _Postponed


class _Loaded(Loader):
    """Gives a module that its package has loaded, where it was about to be loaded again."""

    def __init__(self, module: ModuleType, spec: ModuleSpec):
        self.module, self.spec, self.loader = module, spec, spec.loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Take the module as it is."""
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        """Have its own loader again."""
        self.spec.loader = self.loader


def _load_once(module: ModuleType | None) -> None:
    """Let the import that goes on find a module that is there already."""
    if module is not None and module.__spec__ is not None:
        module.__spec__.loader = _Loaded(module, module.__spec__)


class _Postponed(ModuleType):
    """A module that is empty until it is asked for a name."""

    def __getattr__(self, name: str) -> Any:
        _load(self)
        return getattr(self, name) if type(self) is ModuleType else super().__getattribute__(name)


def _load(module: _Postponed) -> None:
    """Load a module, unless that has begun."""
    with module.__dict__["__lock"]:
        spec = module.__spec__
        if spec is not None and isinstance(spec.loader, _Loader):
            spec.loader = module.__loader__ = spec.loader.loader
            spec.loader.exec_module(module)
            module.__class__ = ModuleType  # type: ignore[assignment]
