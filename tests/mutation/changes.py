"""The faults: every small change of a module that its tests should notice."""

import ast
from dataclasses import dataclass

SWAPPED_OPERATORS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
NEGATIONS = (ast.Eq, ast.NotEq, ast.In, ast.NotIn, ast.Is, ast.IsNot)  # a swap negates the test
SWAPPED_NAMES = {
    name: other
    for pair in (
        ("min", "max"),
        ("minimum", "maximum"),
        ("argmin", "argmax"),
        ("any", "all"),
        ("floor", "ceil"),
    )
    for name, other in (pair, pair[::-1])
}
SYMMETRIC = {"add", "allclose", "array_equal", "max", "maximum", "min", "minimum", "multiply"}
# Keywords and functions with texts for people, which tests do not repeat
MESSAGE_KEYWORDS = {"description", "detail", "help", "message", "reason", "summary", "title"}
MESSAGE_CALLS = ("check_", "warn")  # beginnings of names
NEUTRAL_KEYWORDS = {"strict", "stacklevel"}  # of checks and of messages
LOGGERS = {"log", "logger", "logging"}
BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
NOT_RUN = ("annotation", "returns", "decorator_list")


@dataclass
class Mutant:
    """A change of a module: a node of its syntax tree, and the node that replaces it."""

    module: str
    scope: str
    first_line: int
    last_line: int
    at_import: bool
    before: str
    after: str
    number: int
    _tree: ast.Module
    _holder: ast.AST
    _field: str
    _index: int | None
    _new: ast.AST

    @property
    def key(self):
        """What identifies this mutant, even if its lines move."""
        return self.module, self.scope, self.before, self.after, self.number

    def source(self):
        """Return the module with the change."""
        with _replaced(self._holder, self._field, self._index, self._new):
            return ast.unparse(self._tree)


def find_mutants(module, source):
    """Return all mutants of a module.

    Parameters
    ----------
    module : str
        Its name, such as ``"models/pmm.py"``.
    source : str
        Its text.

    Returns
    -------
    list of Mutant
    """
    tree, mutants, numbers = ast.parse(source), [], {}
    for statement, place, scope, in_function in _statements(tree):
        before = _headline(statement)
        for holder, field, index, new in _changes(statement, place):
            with _replaced(holder, field, index, new):
                after = "pass" if isinstance(new, ast.Pass) else _headline(statement)
            key = (scope, before, after)
            numbers[key] = number = numbers.get(key, 0) + 1
            bodies = [child for name in BODIES for child in getattr(statement, name, [])]
            last = min((child.lineno for child in bodies), default=statement.end_lineno + 1) - 1
            mutants.append(
                Mutant(
                    module,
                    scope,
                    statement.lineno,
                    max(last, statement.lineno),
                    not in_function,
                    before,
                    after,
                    number,
                    tree,
                    holder,
                    field,
                    index,
                    new,
                )
            )
    return mutants


class _replaced:  # noqa: N801 - used as a statement
    """Replace a node by another one temporarily."""

    def __init__(self, holder, field, index, new):
        self.holder, self.field, self.index, self.new = holder, field, index, new

    def __enter__(self):
        self.old = self._put(self.new)

    def __exit__(self, *error):
        self._put(self.old)

    def _put(self, node):
        if self.index is None:
            old = getattr(self.holder, self.field)
            setattr(self.holder, self.field, node)
        else:
            nodes = getattr(self.holder, self.field)
            old, nodes[self.index] = nodes[self.index], node
        return old


def _statements(node, scope="", in_function=False):
    """Yield statements that may change, with place, scope, and whether they are in a function."""
    for field in BODIES:
        for index, child in enumerate(getattr(node, field, [])):
            if _stays(child):
                continue
            if isinstance(child, ast.stmt):
                yield child, (node, field, index), scope, in_function
            inner, inside = scope, in_function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{scope}.{child.name}".lstrip(".")
                inside = in_function or not isinstance(child, ast.ClassDef)
            yield from _statements(child, inner, inside)


def _stays(statement):
    """Return whether a statement is documentation, an import, or for type checkers."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Assert():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name)))):
            return name.lstrip("_") in LOGGERS
    return False


def _headline(statement):
    """Return a statement without its bodies, on one line."""
    text = ast.unparse(statement)
    if not any(getattr(statement, field, []) for field in BODIES):
        return text
    bodies = {field: getattr(statement, field) for field in BODIES if hasattr(statement, field)}
    try:
        for field in bodies:
            setattr(statement, field, [ast.Expr(ast.Constant(...))] if field == "body" else [])
        if isinstance(statement, ast.Match):
            return f"match {ast.unparse(statement.subject)}:"
        if isinstance(statement, ast.Try):
            return "try:"
        return ast.unparse(statement).rsplit("\n", 1)[0]
    finally:
        for field, body in bodies.items():
            setattr(statement, field, body)


def _changes(statement, place):
    """Yield holder, field, index and new node of each change of a statement, without its bodies."""
    if _can_go(statement):
        yield *place, ast.Pass()
    if isinstance(statement, ast.Raise):
        return
    if isinstance(statement, ast.Return) and not _is_none(statement.value):
        yield statement, "value", None, ast.Constant(None)
    if isinstance(statement, ast.AugAssign):
        yield from _swaps(statement, "op", None, statement.op)
    yield from _negations(statement)
    yield from _expression_changes(statement)


def _can_go(statement):
    """Return whether a module may still run without a statement."""
    match statement:
        case ast.Expr(value=ast.Call() | ast.Await()):
            return True
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets)
    kinds = ast.AugAssign | ast.Raise | ast.Break | ast.Continue | ast.Delete
    return isinstance(statement, kinds)


def _is_none(value):
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _children(node):
    """Yield field, index and child of the parts of a node that run, without bodies."""
    for field, value in ast.iter_fields(node):
        if field in NOT_RUN or (isinstance(node, ast.stmt) and field in BODIES):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield field, index, child


def _expression_changes(holder, words=True):
    """Yield the changes of all expressions below a node; with ``words``, also of its strings."""
    for field, index, node in _children(holder):
        spoken = words
        match node:
            case ast.keyword(arg=name) if name in NEUTRAL_KEYWORDS:
                continue
            case ast.keyword(arg=name):
                spoken = words and name not in MESSAGE_KEYWORDS
            case ast.Constant():
                spoken = words and not _speaks(holder)
        for new in _variants(node, spoken):
            yield holder, field, index, new
        match node:
            case ast.Compare(ops=operators):
                for place, operator in enumerate(operators):
                    yield from _swaps(node, "ops", place, operator)
            case ast.BinOp(op=operator) | ast.BoolOp(op=operator):
                yield from _swaps(node, "op", None, operator)
            case ast.IfExp() | ast.comprehension():
                yield from _negations(node)
        yield from _expression_changes(node, spoken)


def _swaps(holder, field, index, operator):
    if type(operator) in SWAPPED_OPERATORS:
        yield holder, field, index, SWAPPED_OPERATORS[type(operator)]()


def _negations(node):
    """Yield the negations of the conditions of a statement or expression."""
    tests = []
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        tests = [("test", None, node.test)]
    elif isinstance(node, ast.comprehension):
        tests = [("ifs", index, test) for index, test in enumerate(node.ifs)]
    for field, index, test in tests:
        match test:
            case ast.UnaryOp(op=ast.Not()):
                continue  # removing its "not" gives the same
            case ast.Compare(ops=[operator]) if isinstance(operator, NEGATIONS):
                continue
        yield node, field, index, ast.UnaryOp(ast.Not(), test)


def _variants(node, words):
    """Yield the expressions that may replace an expression."""
    match node:
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Constant(value=float(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str(value)) if words:
            yield ast.Constant(f"XX{value}")
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield operand
        case ast.Call():
            yield from _other_calls(node)


def _other_calls(call):
    """Yield calls of the opposite function, with swapped arguments, and with fewer arguments."""
    match call.func:
        case ast.Name(id=name) if name in SWAPPED_NAMES:
            yield _call(call, func=ast.Name(SWAPPED_NAMES[name]))
        case ast.Attribute(value=value, attr=name) if name in SWAPPED_NAMES:
            yield _call(call, func=ast.Attribute(value, SWAPPED_NAMES[name]))
    for index in range(len(call.args) - 1 if _name(call) not in SYMMETRIC else 0):
        one, two = call.args[index : index + 2]
        starred = isinstance(one, ast.Starred) or isinstance(two, ast.Starred)
        if not starred and ast.dump(one) != ast.dump(two):
            args = [*call.args[:index], two, one, *call.args[index + 2 :]]
            yield _call(call, args=args)
    for keyword in call.keywords:
        if keyword.arg not in (None, *MESSAGE_KEYWORDS, *NEUTRAL_KEYWORDS):
            yield _call(call, keywords=[other for other in call.keywords if other is not keyword])


def _speaks(node):
    """Return whether a node is a call whose arguments are parts of messages."""
    return isinstance(node, ast.Call) and str(_name(node)).lstrip("_").startswith(MESSAGE_CALLS)


def _name(call):
    return getattr(call.func, "attr", getattr(call.func, "id", None))


def _call(call, **parts):
    return ast.Call(**{"func": call.func, "args": call.args, "keywords": call.keywords} | parts)
