"""Small changes to Python code, of which only the changed spot differs."""

import ast
import io
import random
import re
import tokenize
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

PACKAGES = ("elmo_scratch", "elmo_scratch_compat")

TURNED = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "is": "is not",
    "is not": "is",
    "in": "not in",
    "not in": "in",
    "and": "or",
    "or": "and",
    "+": "-",
    "-": "+",
    "+=": "-=",
    "-=": "+=",
}
"""What takes an operator's place."""

DROPPED = (
    ast.Expr,
    ast.Assign,
    ast.AugAssign,
    ast.Return,
    ast.Raise,
    ast.Assert,
    ast.Delete,
    ast.Break,
    ast.Continue,
)
"""Statements that are dropped, if they stand in a function: no module does without its names."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Mutation(NamedTuple):
    """
    A change of one spot in a file.

    # Parameters

    file : `str`
        Its path in the checkout.
    start, end : `int`
        The characters of the text that are replaced.
    kind : `str`
        `comparison`, `constant`, `statement`, `arguments`, `boolean` or `sum`.
    before, after : `str`
        What is replaced, and by what.
    first_line, last_line : `int`
        Of the statement, or of its head if others stand within it.
    runs_at_import : `bool`
        Whether it is outside of functions.
    """

    file: str
    start: int
    end: int
    kind: str
    before: str
    after: str
    first_line: int
    last_line: int
    runs_at_import: bool

    def apply(self, text: str) -> str:
        """The text of the file with the change."""
        return text[: self.start] + self.after + text[self.end :]

    def __str__(self) -> str:
        before, after = (re.sub(r"\s+", " ", part) for part in (self.before, self.after))
        return f"{self.file}:{self.first_line}  {self.kind}: {before}  ->  {after}"


class Spot(NamedTuple):
    """
    A node that may be changed, and where it stands.

    # Parameters

    node : `ast.AST`
        It.
    statement : `ast.stmt`
        The innermost statement around it.
    in_function : `bool`
        Whether it runs when a function does, rather than when its module is imported.
    """

    node: ast.AST
    statement: ast.stmt
    in_function: bool


class MutableText:
    """
    The text of a file, which can be changed in many ways.

    # Parameters

    file : `str`
        Its path in the checkout.
    text : `str`
        What it holds.
    """

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._tree = ast.parse(text)
        self._lines = [line.encode("utf-8") for line in text.split("\n")]
        self._starts = [0]  # the first character of each line
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._words = [
            (self._starts[token.start[0] - 1] + token.start[1], token.string)
            for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline)
            if token.type in (tokenize.OP, tokenize.NAME)
        ]

    def mutations(self) -> List[Mutation]:
        """All, from the top down."""
        return sorted(found for spot in self._spots() for found in self._mutations_of(spot))

    def is_changed_by(self, mutation: Mutation) -> bool:
        """Whether the mutation leaves a program, and another one."""
        try:
            return ast.dump(ast.parse(mutation.apply(self._text))) != ast.dump(self._tree)
        except SyntaxError:
            return False

    def _spots(self) -> Iterator[Spot]:
        """All nodes in which something may be changed."""
        ahead: List[Tuple[ast.AST, Optional[ast.stmt], bool]] = [(self._tree, None, False)]
        while ahead:
            node, statement, in_function = ahead.pop()
            if isinstance(node, ast.stmt):
                statement = node
            if statement is not None:
                yield Spot(node, statement, in_function)
            for name, child in changeable_children(node):
                runs_later = isinstance(node, FUNCTIONS) and name == "body"
                ahead.append((child, statement, in_function or runs_later))

    def _mutations_of(self, spot: Spot) -> Iterator[Mutation]:
        """What a node may be changed to, nodes within it aside."""
        node = spot.node
        if isinstance(node, ast.Compare):
            yield from self._turned(spot, "comparison", [node.left, *node.comparators])
        elif isinstance(node, ast.BoolOp):
            yield from self._turned(spot, "boolean", node.values)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            if not is_text(node.left) and not is_text(node.right):
                yield from self._turned(spot, "sum", [node.left, node.right])
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, (ast.Add, ast.Sub)):
            if not is_text(node.value):
                yield from self._turned(spot, "sum", [node.target, node.value])
        elif isinstance(node, ast.Constant):
            changed = changed_constant(node.value)
            if changed is not None:
                yield self._mutation(spot, "constant", *self._span(node), changed)
        elif isinstance(node, ast.Call):
            yield from self._swapped(spot, node.args)
        if isinstance(node, DROPPED) and spot.in_function and not is_bare_constant(node):
            yield self._mutation(spot, "statement", *self._span(node), "pass")

    def _turned(self, spot: Spot, kind: str, operands: Sequence[ast.expr]) -> Iterator[Mutation]:
        """Each operator in turn."""
        for left, right in zip(operands, operands[1:]):
            gap_start, gap_end = self._span(left)[1], self._span(right)[0]
            words = [
                (place, word)
                for place, word in self._words
                if gap_start <= place < gap_end and word not in ("(", ")")
            ]
            end = words[-1][0] + len(words[-1][1])
            after = TURNED[" ".join(word for _, word in words)]
            yield self._mutation(spot, kind, words[0][0], end, after)

    def _swapped(self, spot: Spot, arguments: Sequence[ast.expr]) -> Iterator[Mutation]:
        """Each argument with the next one."""
        for left, right in zip(arguments, arguments[1:]):
            if not isinstance(left, ast.Starred) and not isinstance(right, ast.Starred):
                (start, left_end), (right_start, end) = self._span(left), self._span(right)
                text = self._text
                after = text[right_start:end] + text[left_end:right_start] + text[start:left_end]
                yield self._mutation(spot, "arguments", start, end, after)

    def _mutation(self, spot: Spot, kind: str, start: int, end: int, after: str) -> Mutation:
        first_line, last_line = lines_of(spot)
        before = self._text[start:end]
        at_import = not spot.in_function
        return Mutation(
            self._file, start, end, kind, before, after, first_line, last_line, at_import
        )

    def _span(self, node: Any) -> Tuple[int, int]:
        """The characters of the text that a node takes."""
        return (
            self._place(node.lineno, node.col_offset),
            self._place(node.end_lineno, node.end_col_offset),
        )

    def _place(self, line: int, column: int) -> int:
        """The character at a column, which counts bytes."""
        return self._starts[line - 1] + len(self._lines[line - 1][:column].decode("utf-8"))


def changeable_children(node: ast.AST) -> Iterator[Tuple[str, ast.AST]]:
    """The parts of a node in which something may be changed, with the names of their fields."""
    # Before Python 3.12 expressions in formatted strings have no position of their own.
    if isinstance(node, (ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return
    is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "type_params") or is_for_types and name == "body":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield name, child


def lines_of(spot: Spot) -> Tuple[int, int]:
    """
    The first and the last line of the statement, of which coverage knows those that run. Statements
    within it are left out, but not what stands between them and the node.
    """
    statement, node = spot.statement, spot.node
    within = [
        first_line_of(one)
        for one in ast.walk(statement)
        if isinstance(one, ast.stmt) and one is not statement
    ]
    last = min(within) - 1 if within else statement.end_lineno
    return first_line_of(statement), max(last or 0, getattr(node, "end_lineno", 0))


def first_line_of(statement: Any) -> int:
    """Decorators included."""
    decorators = getattr(statement, "decorator_list", [])
    return min(one.lineno for one in [statement, *decorators])


def is_text(node: ast.expr) -> bool:
    """Whether it is surely no number, so that it can be added but not subtracted."""
    if isinstance(node, ast.BinOp):
        return is_text(node.left) or is_text(node.right)
    is_string = isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))
    return is_string or isinstance(node, (ast.JoinedStr, ast.List, ast.ListComp))


def is_bare_constant(node: ast.AST) -> bool:
    """Whether a statement is a docstring, or `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def changed_constant(value: object) -> Optional[str]:
    """Another truth value or number, as one writes it; `None` for anything else."""
    if isinstance(value, bool):
        return repr(not value)
    if isinstance(value, (int, float)):
        return repr(value + 1 if value + 1 != value else value * 2)
    return None


def read_text(path: Path) -> str:
    """With the line ends as they are."""
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def drawn_mutations(
    root: Path, seed: int, count: int, within: Sequence[str] = PACKAGES
) -> List[Mutation]:
    """
    # Parameters

    root : `Path`
        A checkout.
    seed, count : `int`
        With the same seed, a smaller count gives the first ones of a larger count.
    within : `Sequence[str]`, optional (default = `PACKAGES`)
        The files, and the folders with the files, to draw from.

    # Returns

    `List[Mutation]`
        By turns of each folder, and there as many of each kind. Fewer than `count` where there are
        no more.
    """
    texts = {file: MutableText(file, read_text(root / file)) for file in python_files(root, within)}
    rooms: Dict[str, Dict[str, List[Mutation]]] = {}
    for file, text in texts.items():
        for mutation in text.mutations():
            kinds = rooms.setdefault(str(Path(file).parent), {})
            kinds.setdefault(mutation.kind, []).append(mutation)
    generator = random.Random(seed)
    names = sorted(rooms)
    generator.shuffle(names)
    drawn: List[Mutation] = []
    while len(drawn) < count and any(rooms.values()):
        for name in names:
            found = draw(rooms[name], texts, generator)
            if found is not None:
                drawn.append(found)
    return drawn[:count]


def python_files(root: Path, within: Iterable[str]) -> List[str]:
    """All in these folders, and these files, as paths in the checkout."""
    found: Set[Path] = set()
    for name in within:
        found.update([root / name] if (root / name).is_file() else (root / name).rglob("*.py"))
    return sorted(path.relative_to(root).as_posix() for path in found)


def draw(
    kinds: Dict[str, List[Mutation]], texts: Dict[str, MutableText], generator: random.Random
) -> Optional[Mutation]:
    """Takes out a mutation of any kind, or none if there are no more."""
    while kinds:
        kind = generator.choice(sorted(kinds))
        mutation = kinds[kind].pop(generator.randrange(len(kinds[kind])))
        if not kinds[kind]:
            del kinds[kind]
        if texts[mutation.file].is_changed_by(mutation):
            return mutation
    return None
