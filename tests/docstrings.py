"""The defaults of parameters that docstrings and signatures state."""

import ast
import inspect
import pkgutil
import re
from dataclasses import is_dataclass
from importlib import import_module

SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^(\w[\w, ]*) : .*default=(.*)$", re.MULTILINE)
AS_CLASS = re.compile(r"^(\w[\w, ]*)\n    See :class:`(\w+)`", re.MULTILINE)
AS_FUNCTION = re.compile(r"^See :func:`([\w.]+)`", re.MULTILINE)


def public_callables(package):
    """Return the public functions, classes and methods of a package, by name.

    A class stands for its ``__init__``; methods are those that the package itself writes. Records
    (dataclasses) are left out: their docstrings list attributes.
    """
    module, callables = import_module(package), {}
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isfunction(value):
            callables[name] = value
        elif inspect.isclass(value) and not is_dataclass(value):
            callables[name] = value
            for attribute in dir(value):
                method = getattr(value, attribute)
                is_own = (getattr(method, "__module__", None) or "").startswith(package)
                if inspect.isroutine(method) and is_own and not attribute.startswith("_"):
                    callables[f"{name}.{attribute}"] = method
    return {name: function for name, function in callables.items() if declared_defaults(function)}


def declared_defaults(function):
    """Return the defaults in a signature that are numbers, names or truth values."""
    parameters = inspect.signature(function).parameters.values()
    return {
        p.name: p.default for p in parameters if isinstance(p.default, bool | float | int | str)
    }


def documented_defaults(function):
    """Return the defaults that a docstring states, itself or by another that it refers to."""
    text = inspect.cleandoc(function.__doc__ or "")
    section, reference = SECTION.search(text), AS_FUNCTION.search(text)
    if section is None:
        return {} if reference is None else documented_defaults(pkgutil.resolve_name(reference[1]))
    stated = {}
    for names, other in AS_CLASS.findall(section[1]):
        known = documented_defaults(getattr(import_module("polytopic"), other))
        stated |= {name: known[name] for name in names.split(", ") if name in known}
    for names, default in ENTRY.findall(section[1]):
        stated |= dict.fromkeys(names.split(", "), _value(default))
    return stated


def wrong_defaults(function):
    """Return the parameters whose docstring states another default than the signature, or none."""
    documented = documented_defaults(function)
    declared = declared_defaults(function)
    return {name: value for name, value in declared.items() if documented.get(name) != value}


def _value(text):
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text  # described in words, such as the name of a function
