"""Compiled kernels from disk, loaded without the compiler.

numba loads what it has kept as if more were to be compiled with it: it reads the code from which
that would be made, imports the parts of its library that are in it, and compiles functions which
count references. That takes five times as long as the kernel itself, and 30 MB. Here it waits until
something is compiled, which is rare. A kernel that was loaded so can be called, also by others, but
not be given to others as a function. Inner parts of numba are used for this.
"""

import sys
from functools import cache
from importlib import import_module

from llvmlite import binding
from numba.core import environment
from numba.core.runtime import _nrt_python

_WITH_SYMBOLS = "numba.cpython.hashing"  # tells the compiler addresses when it is imported
_rebuild_environment = environment._rebuild_env


def load_lightly(kernels):
    """Let a cache of kernels load them without what only a compiler needs."""
    compile_ready, rebuild, file = kernels.load_overload, kernels._impl.rebuild, kernels._cache_file
    load_all = file._load_data

    def load_overload(signature, context):
        _make_memory_ready()
        with kernels._guard_against_spurious_io_errors():
            found = kernels._load_overload(signature, context)
            if found is not None:
                return found
        return compile_ready(signature, context)

    def load_data(name):  # while numba lets no other thread load or keep anything
        environment._rebuild_env = _environment
        try:
            return load_all(name)
        finally:
            environment._rebuild_env = _rebuild_environment

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


def _environment(module, constants, name):
    """Return the names and constants of compiled code; the names are not used by it.

    So the modules that were compiled into a kernel are not imported.
    """
    found = environment.lookup_environment(name)
    if found is None:
        if module == _WITH_SYMBOLS:
            import_module(module)
        loaded = sys.modules.get(module)
        found = environment.Environment({"__name__": module} if loaded is None else vars(loaded))
        found.consts[:] = constants
        found.env_name = name
        environment.Environment._memo[name] = found
    return found
