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


def postpone(name: str) -> None:
    """Let a module be loaded when a name in it is first asked for, not when it is imported.

    For programs of our own: scikit-learn imports ``scipy.stats`` always and needs it rarely, and
    half of the time that it takes to start is spent on it. (`importlib.util.LazyLoader` loads a
    module as soon as a second module imports it.)
    """
    if name not in sys.modules:
        sys.meta_path.insert(0, _Finder(name))


class _Finder:
    """Finds one module, and nothing else."""

    def __init__(self, name: str):
        self._name = name

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        """Find the module as it is always found, but for what loads it."""
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


class _Postponed(ModuleType):
    """A module that is empty until it is asked for a name."""

    def __getattr__(self, name: str) -> Any:
        with self.__dict__["__lock"]:
            spec = self.__spec__
            if spec is not None and isinstance(spec.loader, _Loader):
                spec.loader = self.__loader__ = spec.loader.loader
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
        return getattr(self, name) if type(self) is ModuleType else super().__getattribute__(name)
