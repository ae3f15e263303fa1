"""Compiled kernels from disk, loaded without the compiler.

numba loads what it has kept as if more were to be compiled with it: it reads the code from which
that would be made, imports the parts of its library that are in it, and compiles functions which
count references. That takes five times as long as the kernel itself, and 30 MB. Here it waits until
something is compiled, which is rare. A kernel that was loaded so can be called, also by others, but
not be given to others as a function. Inner parts of numba are used for this.
"""

import pickle
import sys
from functools import cache
from importlib import import_module

from llvmlite import binding
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.runtime import _nrt_python

_WITH_SYMBOLS = "numba.cpython.hashing"  # tells the compiler addresses when it is imported


def load_lightly(kernels):
    """Let a cache of kernels load them without what only a compiler needs."""
    compile_ready, rebuild, file = kernels.load_overload, kernels._impl.rebuild, kernels._cache_file

    def load_overload(signature, context):
        _make_memory_ready()
        with kernels._guard_against_spurious_io_errors():
            found = kernels._load_overload(signature, context)
            if found is not None:
                return found
        return compile_ready(signature, context)

    def load_data(name):
        with open(file._data_path(name), "rb") as data:
            return _Unpickler(data).load()

    def rebuild_unlinked(context, payload):
        (name, kind, (code, bitcode)), function, *rest = payload
        entry = _bitcode_of_entry(function.llvm_cpython_wrapper_name)
        found = rebuild(context, ((name, kind, (code, entry)), function, *rest))
        found.library._shared_module = _Unread(bitcode)
        return found

    kernels.load_overload, kernels._impl.rebuild = load_overload, rebuild_unlinked
    file._load_data = load_data


@cache
def _make_memory_ready():
    """Let kernels find what gives them memory; what counts references is in each kernel."""
    for name, address in _nrt_python.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def _bitcode_of_entry(name):
    """Return code that only tells by which name a kernel is called."""
    return binding.parse_assembly(f'define void @"{name}"() {{ ret void }}').as_bitcode()


class _Unread:
    """The code that is linked into kernels that call this one, read when one is compiled."""

    def __init__(self, bitcode):
        self._bitcode = bitcode

    def clone(self):
        """Return the code."""
        return binding.parse_bitcode(self._bitcode)


class _Unpickler(pickle.Unpickler):
    """Reads what was kept, but does not import the modules that were compiled into it."""

    def find_class(self, module, name):
        found = super().find_class(module, name)
        return _environment if found is _rebuild_env else found


def _environment(module, constants, name):
    """Return the names and constants of compiled code; the names are not used by it."""
    found = lookup_environment(name)
    if found is None:
        if module == _WITH_SYMBOLS:
            import_module(module)
        loaded = sys.modules.get(module)
        found = Environment({"__name__": module} if loaded is None else vars(loaded))
        found.consts[:] = constants
        found.env_name = name
        Environment._memo[name] = found
    return found
