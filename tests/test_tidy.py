"""House rules that no linter knows, each with its reason, each with a canary that it must catch.

A rule is a generator `tree → (line, what is wrong)`. First come the rules, then a sample each must flag and one it must
pass, then the tests that hold them against the tree.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.repository

ROOT = Path(__file__).parent.parent
PACKAGES = ("simkit", "reference_runtime", "scenarios", "conformance")
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
ARCHITECTURE_LINES_MAX = 60
SCREEN_LINES = 45

Offence = tuple[int, str]
Rule = Callable[[ast.Module], Iterator[Offence]]


# ------------------------------------------------------------------------------------------------ rules over one module
CLOCKS = {
    "time": {"time", "monotonic", "perf_counter", "process_time", "sleep", "localtime", "gmtime"},
    "datetime": {"now", "utcnow", "today"},
    "date": {"today"},
}
CHANCE = {"random": None, "secrets": None, "uuid": {"uuid1", "uuid4"}, "os": {"urandom", "getrandom"}}


def _reads(tree: ast.AST, module: str, names: set[str] | None) -> Iterator[tuple[int, str]]:
    """Uses of `module.name` and `from module import name`; names None stands for all of them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).split(".")[-1] == module:
            if names is None or node.attr.removesuffix("_ns") in names:
                yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == module:
            for alias in node.names:
                if names is None or alias.name.removesuffix("_ns") in names:
                    yield node.lineno, alias.name


def wall_clock(tree: ast.Module) -> Iterator[Offence]:
    """Virtual time is the only time there is: a real clock makes two runs of one case differ."""
    for module, names in CLOCKS.items():
        for line, name in _reads(tree, module, names):
            yield line, f"{module}.{name} reads the real clock; use World.now_ns or World.sleep_ns"


def stray_chance(tree: ast.Module) -> Iterator[Offence]:
    """Every choice comes from the tape: one drawn elsewhere cannot be replayed or shrunk."""
    for module, names in CHANCE.items():
        for line, name in _reads(tree, module, names):
            if (module, name) != ("random", "Random"):
                yield line, f"{module}.{name} draws outside the tape; use a Tape stream"


def address_order(tree: ast.Module) -> Iterator[Offence]:
    """Nothing is ordered by hash() or id(): both change from process to process."""
    own = [scope for scope in ast.walk(tree) if isinstance(scope, ast.FunctionDef) and scope.name == "__hash__"]
    inside = [node for scope in own for node in ast.walk(scope)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "hash" and node not in inside:
            yield node.lineno, "hash() differs between processes; use simkit's digests"
        elif isinstance(node, ast.keyword) and node.arg == "key" and {"id", "hash"} & _names(node.value):
            yield node.value.lineno, "an order by id() or hash() differs between processes"


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


INDIFFERENT = {"sorted", "min", "max", "len", "sum", "any", "all", "set", "frozenset"}
KEEPS_ORDER = {"list", "tuple", "enumerate", "iter", "dict", "zip", "map", "filter"}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def _is_set(node: ast.AST, known: set[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) in {"set", "frozenset"}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor):
        return _is_set(node.left, known) or _is_set(node.right, known)
    return isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in known


def _scope(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of one scope, without those of the functions inside it."""
    for child in ast.iter_child_nodes(tree):
        yield child
        if not isinstance(child, FUNCTIONS):
            yield from _scope(child)


def _named_sets(nodes: list[ast.AST]) -> set[str]:
    """Names and attributes that these nodes declare or fill as sets."""
    known: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.AnnAssign) and re.match(r"(frozen)?set\b", ast.unparse(node.annotation)):
            known |= {ast.unparse(node.target), f"self.{ast.unparse(node.target)}"}
        elif isinstance(node, ast.Assign) and _is_set(node.value, set()):
            known.update(ast.unparse(target) for target in node.targets)
    return known


def set_order(tree: ast.Module) -> Iterator[Offence]:
    """A set has no order of its own (strings hash anew in every process): iterate over sorted(…) or a dict."""
    everywhere = {name for name in _named_sets(list(ast.walk(tree))) if name.startswith("self.")}
    everywhere |= _named_sets(list(_scope(tree)))
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))]:
        nodes = list(_scope(scope))
        known = everywhere | _named_sets(nodes)
        harmless = _without_order(nodes)
        for node in nodes:
            if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension) and node not in harmless:
                if _is_set(node.iter, known):
                    yield node.iter.lineno, "iterates over a set; its order differs between processes"
            elif isinstance(node, ast.Call) and _keeps_order(node) and any(_is_set(a, known) for a in node.args):
                yield node.lineno, f"{ast.unparse(node.func)}() of a set; its order differs between processes"


def _keeps_order(call: ast.Call) -> bool:
    name = ast.unparse(call.func)
    return name in KEEPS_ORDER or name.endswith(".join")


def _without_order(nodes: list[ast.AST]) -> list[ast.comprehension]:
    """The `for … in` parts of comprehensions whose result is the same in any order."""
    taken = [node for node in nodes if isinstance(node, ast.SetComp)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) in INDIFFERENT]
    taken_by_calls = [a for call in calls for a in call.args if isinstance(a, ast.GeneratorExp | ast.ListComp)]
    return [part for node in (*taken, *taken_by_calls) for part in node.generators]


def private_trio(tree: ast.Module) -> Iterator[Offence]:
    """All private use of trio lives in simkit/_kernel, so that a new trio breaks one place, which says so."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        if isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        for name in names:
            if name.startswith("trio.") and re.search(r"\._[a-z]", name):
                yield getattr(node, "lineno", 1), f"{name} is private to trio; only simkit/_kernel may use it"


def prints(tree: ast.Module) -> Iterator[Offence]:
    """Data goes to stdout and progress to stderr in one place; a stray print corrupts the machine formats."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            yield node.lineno, "print() outside the command line; emit an event"


def long_function(tree: ast.Module) -> Iterator[Offence]:
    """A function fits a screen: branches in the parent, pure leaves below."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield node.lineno, f"{node.name} has {lines} lines; at most {FUNCTION_LINES_MAX}"


def no_map(tree: ast.Module) -> Iterator[Offence]:
    """The first words of a module are its map."""
    if tree.body and not ast.get_docstring(tree):
        yield 1, "no docstring that says what is here"


def untold_test(tree: ast.Module) -> Iterator[Offence]:
    """A test says in one sentence what must hold, so that a failure is understood without reading it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            told = ast.get_docstring(node) or ""
            if not told.endswith((".", "?", "!")) or "\n\n" in told:
                yield node.lineno, f"{node.name} needs one sentence of docstring"


def hopeful_sleep(tree: ast.Module) -> Iterator[Offence]:
    """A test waits for a fact, never for luck: sleep only between two looks of a loop that has a bound."""
    looks = [node for loop in ast.walk(tree) if isinstance(loop, ast.For | ast.While) for node in ast.walk(loop)]
    polled = {getattr(node, "lineno", 0) for node in looks}
    for line, _ in _reads(tree, "time", {"sleep"}):
        if line not in polled:
            yield line, "time.sleep in a test; wait for the event, with a bound"


SAMPLES: list[tuple[Rule, str, str]] = [
    (wall_clock, "import time\nt = time.monotonic_ns()", "t = world.now_ns"),
    (wall_clock, "from datetime import datetime\nt = datetime.now()", "t = world.time"),
    (stray_chance, "import random\nrandom.choice([1])", "import random\nr = random.Random(7)"),
    (stray_chance, "from os import urandom", "from os import path"),
    (address_order, "x.sort(key=id)", "x.sort(key=lambda t: t.number)"),
    (address_order, "y = hash('a')", "class A:\n  def __hash__(self): return hash(self.a)"),
    (set_order, "for x in {1, 2}: pass", "for x in sorted({1, 2}): pass"),
    (set_order, "s: set[str] = set()\nt = [x for x in s]", "s: set[str] = set()\nt = 'a' in s"),
    (set_order, "t = list(set(a) | set(b))", "t = len(set(a) | set(b))"),
    (set_order, "def f():\n  s = {1}\n  return [x for x in s]", "def f():\n  s = {1}\ndef g(s): return [x for x in s]"),
    (set_order, "t = [x for x in {1, 2}]", "t = any(x for x in {1, 2})"),
    (private_trio, "from trio import _core", "from trio import lowlevel"),
    (private_trio, "import trio\ntrio._core._run.Runner", "import trio\ntrio.run"),
    (prints, "print(1)", "emit(1)"),
    (long_function, "def f():\n" + "    pass\n" * FUNCTION_LINES_MAX, "def f():\n    pass"),
    (no_map, "x = 1", "'''Map.'''\nx = 1"),
    (untold_test, "def test_a(): pass", "def test_a():\n    '''It holds.'''"),
    (hopeful_sleep, "import time\ntime.sleep(1)", "import time\nfor _ in range(9): time.sleep(1)"),
]


@pytest.mark.parametrize(
    ("rule", "bad", "good"), SAMPLES, ids=[f"{rule.__name__}-{n}" for n, (rule, _, _) in enumerate(SAMPLES)]
)
def test_every_rule_catches_its_canary(rule: Rule, bad: str, good: str) -> None:
    """A rule flags the sample it exists for and passes the right way to write it."""
    assert list(rule(ast.parse(bad)))
    assert not list(rule(ast.parse(good)))


# ---------------------------------------------------------------------------------------------- the rules and the tree
def modules(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def check(rule: Rule, paths: list[Path], allowed: tuple[str, ...] = ()) -> None:
    """Fail with every offence in `paths`; `allowed` are path prefixes relative to the root."""
    offences = [
        f"{path.relative_to(ROOT)}:{line}: {what}"
        for path in paths
        if not path.relative_to(ROOT).as_posix().startswith(allowed)
        for line, what in rule(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not offences, f"{rule.__doc__}\n" + "\n".join(offences)


@pytest.mark.parametrize("rule", [wall_clock, stray_chance])
def test_simulation_is_closed_to_the_real_world(rule: Rule) -> None:
    """Only the guard, which replaces them, and what bounds work on the wall, name the real clock or dice."""
    bounds = ("simkit/_pytest", "simkit/_kernel/watchdog", "simkit/exploring/explorer", "simkit/exploring/simplest")
    check(rule, modules("simkit"), allowed=("simkit/guard", "simkit/_guard", *bounds))


@pytest.mark.parametrize("rule", [address_order, set_order])
def test_simulation_has_one_order(rule: Rule) -> None:
    """Nothing in the simulated world, its scenarios or its judges depends on the order of a hash table."""
    check(rule, modules("simkit", "scenarios"))


def test_trio_internals_stay_in_the_kernel() -> None:
    """Only the kernel touches what trio keeps to itself."""
    check(private_trio, modules(*PACKAGES), allowed=("simkit/_kernel/",))


def test_only_edges_print() -> None:
    """Only command lines, reporters and adapter programs print."""
    edges = ("conformance/cli/", "conformance/reporters/", "conformance/adapters/", "reference_runtime/__main__")
    check(prints, modules(*PACKAGES), allowed=(*edges, "reference_runtime/cli"))


def test_functions_fit_a_screen() -> None:
    """No function is longer than a screen, but the kernel's loop, in which a call for each step would cost too much."""
    check(long_function, modules(*PACKAGES, "tests"), allowed=("simkit/_kernel/loop.py",))


def test_files_stay_small() -> None:
    """No module is longer than 600 lines; those on the way there are listed with `-rA`."""
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in modules(*PACKAGES, "tests")}
    for path, length in lengths.items():
        if length > FILE_LINES_MAX * 2 // 3:
            print(f"{path.relative_to(ROOT)}: {length} lines, time to split")
    assert not [f"{path.relative_to(ROOT)}: {n} lines" for path, n in lengths.items() if n > FILE_LINES_MAX]


def test_modules_begin_with_their_map() -> None:
    """Every module that has code begins with words."""
    check(no_map, modules(*PACKAGES, "tests"))
    bare = [package for package in PACKAGES if not (ROOT / package / "__init__.py").read_text(encoding="utf-8").strip()]
    assert not bare, f"packages without a map in __init__.py: {bare}"


@pytest.mark.parametrize("rule", [untold_test, hopeful_sleep])
def test_tests_are_told_and_do_not_hope(rule: Rule) -> None:
    """Every test has its sentence, and none sleeps for luck; in simulated threads sleep is virtual."""
    virtual = (
        ("tests/simkit/test_aio.py", "tests/simkit/test_threaded.py", "tests/simkit/test_mixups.py")
        if rule is hopeful_sleep
        else ()
    )
    check(rule, modules("tests"), allowed=virtual)


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").split(".")[0]


def test_helper_needs_nothing() -> None:
    """The file people copy beside their adapter imports the standard library only."""
    helper = ROOT / "conformance/helper/simkit_adapter.py"
    assert set(_imports(helper)) <= set(sys.stdlib_module_names)


def test_adapters_know_only_the_helper_and_their_harness() -> None:
    """An adapter program would run as well outside this repository: it imports nothing of the kit but the helper."""
    for path in modules("conformance/adapters"):
        ours = set(_imports(path)) & {"simkit", "scenarios", "conformance", "reference_runtime"}
        assert ours <= ({"reference_runtime"} if "reference" in path.parts else set()), path


# -------------------------------------------------------------------------------------------------------- whole files
TOP_LEVEL = {
    *PACKAGES,
    *("tests", "docs", "newsfragments", ".ci", ".gitignore", "pyproject.toml", "requirements.lock", "Makefile"),
    *("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"),
}
# Written in pieces, so that this file does not match itself.
UNWANTED = re.compile(
    "|".join(
        [
            r"(?<![\w.~-])/(?:work|root|home|Users)/\w",  # a path of one machine
            "pypi" + r"\.org",
            "pythonhosted" + r"\.org",
            "npmjs" + r"\.(?:org|com)",
            r"deb\." + "debian",
            "index" + "-url",
        ]
    )
)


def committed() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git work tree")
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_top_level_is_the_agreed_one() -> None:
    """A newcomer sees the whole house at the top level; nothing else lands there."""
    assert {name.split("/")[0] for name in committed()} <= TOP_LEVEL


def test_no_file_names_a_machine_or_a_registry() -> None:
    """What is committed works anywhere: no path of one machine, no host of a registry or mirror."""
    found = []
    for name in committed():
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        found += [f"{name}: {match.group()}" for match in UNWANTED.finditer(text)]
    assert not found


def test_architecture_is_short() -> None:
    """ARCHITECTURE.md is read whole, or not at all."""
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) < ARCHITECTURE_LINES_MAX


def test_readme_shows_the_commands_first() -> None:
    """The first screen of the README has the two commands and nothing left to fill in."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    screen = "\n".join(text.splitlines()[:SCREEN_LINES])
    assert "make certify" in screen
    assert "simkit run" in screen
    assert "TODO" not in text


def test_every_ignored_lint_rule_has_its_reason() -> None:
    """A rule switched off without a reason is a rule nobody dares to switch on again."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lint = text.split("[tool.ruff.lint]", 1)[1].split("[tool.ruff.lint.flake8", 1)[0]
    codes = [line for line in lint.splitlines() if re.match(r'\s+"[A-Z]+\d*",', line)]
    assert codes
    assert not [line for line in codes if "#" not in line]


def test_news_fragments_are_well_named() -> None:
    """A fragment is called `ISSUE.TYPE.md` (or `+WORD.TYPE.md`) and holds whole sentences for users."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    types = "|".join(kind["directory"] for kind in config["tool"]["towncrier"]["type"])
    for path in sorted((ROOT / "newsfragments").iterdir()):
        if path.name not in {"README.md", ".gitignore"}:
            assert re.fullmatch(rf"(\d+|\+[a-z0-9-]+)\.({types})(\.\d+)?\.md", path.name), path.name
            assert path.read_text(encoding="utf-8").rstrip().endswith("."), f"{path.name}: whole sentences, please"
