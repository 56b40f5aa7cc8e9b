"""The examples of README.md and docs/: Python runs, JSON and TOML parse, commands exist.

Python blocks of one document share one namespace, from top to bottom, as a reader would type them.
"""

from __future__ import annotations

import functools
import json
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import attrs
import pytest
from sybil import Document, Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

import conformance
from conformance import manifest
from scenarios.history import OperationState, OperationStatus, State, Status
from simkit.services import CONTRACTS, LOOKUP_ENTRIES, SCRIPT_ENTRIES, Request

ROOT = Path(__file__).parent.parent
HELPER = Path(conformance.__file__).parent / "helper"
DOCUMENTS = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path.exists()]


def parse_json(example: Example) -> None:
    json.loads(example.parsed)


def parse_toml(example: Example) -> None:
    """TOML parses, and a manifest is a right one."""
    if "protocol" in tomllib.loads(example.parsed):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "adapter.toml"
            path.write_text(example.parsed, encoding="utf-8")
            manifest.load(path)


def check_commands(example: Example) -> None:
    """Each `$ …` line of a console block names a command and options that there are."""
    for line in example.parsed.splitlines():
        if line.startswith("$ "):
            words = [word for word in shlex.split(line[2:], comments=True) if "=" not in word or word.startswith("-")]
            if words[0] == "make":
                assert set(words[1:]) <= make_targets(), line
            elif Path(words[0]).name == "simkit":
                check_simkit(words[1:], line)


@functools.cache
def make_targets() -> frozenset[str]:
    # Away from the repository, where the wheel is tested, there is no Makefile to hold against.
    makefile = ROOT / "Makefile"
    text = makefile.read_text(encoding="utf-8") if makefile.exists() else ""
    return frozenset(re.findall(r"^([a-z]+):", text, re.MULTILINE))


@functools.cache
def usage(command: str) -> str:
    simkit = Path(sys.executable).with_name("simkit")
    done = subprocess.run([simkit, command, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"there is no `simkit {command}`: {done.stderr or done.stdout}"
    return done.stdout


def check_simkit(words: list[str], line: str) -> None:
    text = usage(words[0])
    for option in (word.split("=")[0] for word in words[1:] if word.startswith("-")):
        assert re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text), f"no option {option}: {line}"


SYBIL = Sybil(
    parsers=[
        SkipParser(),
        PythonCodeBlockParser(),
        CodeBlockParser("json", parse_json),
        CodeBlockParser("toml", parse_toml),
        CodeBlockParser("console", check_commands),
    ]
)


def evaluate(path: Path) -> Iterator[Example]:
    document: Document = SYBIL.parse(path)
    for example in document.examples():
        example.evaluate()
        yield example


@pytest.mark.slow
@pytest.mark.repository
@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_examples_hold(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a document shows works as shown."""
    monkeypatch.syspath_prepend(str(HELPER))  # as the kit does for an adapter
    list(evaluate(path))


@pytest.mark.parametrize(
    "block",
    [
        "```python\n1/0\n```",
        "```json\n{\n```",
        "```toml\n=\n```",
        "```toml\nprotocol = 1\n```",
        "```console\n$ make tea\n```",
    ],
    ids=repr,
)
def test_a_wrong_example_is_noticed(block: str, tmp_path: Path) -> None:
    """An example that does not work fails, whatever its kind."""
    document = tmp_path / "wrong.md"
    document.write_text(f"# A document\n\n{block}\n", encoding="utf-8")
    with pytest.raises(Exception, match=r"\S"):
        list(evaluate(document))


@pytest.mark.slow
@pytest.mark.repository
@pytest.mark.parametrize("name", ["contract", "adapters"])
def test_the_adapters_shown_are_certified(name: str, tmp_path: Path) -> None:
    """Manifest and program that a page shows make an adapter that keeps all it claims, in the words the page shows."""
    page = (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")
    blocks = {"adapter.toml": r"```toml\n(protocol.*?)```", "adapter.py": r"```python\n(.*?serve\(Adapter\(\)\)\n)```"}
    for file, pattern in blocks.items():
        (tmp_path / file).write_text(re.findall(pattern, page, re.DOTALL)[0], encoding="utf-8")
    simkit = Path(sys.executable).with_name("simkit")
    command = [str(simkit), "certify", "adapter.toml", "--format", "plain", "--store", "store"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    promised = re.findall(r"^exit 0: (.*)", page, re.MULTILINE)
    assert promised
    assert promised[0] in done.stdout


@pytest.mark.repository
def test_documents_have_examples() -> None:
    """The documents hold examples at all, so that a parser which finds none is noticed."""
    assert sum(len(list(SYBIL.parse(path).examples())) for path in DOCUMENTS) >= 5


@pytest.mark.repository
def test_the_contract_page_has_every_field() -> None:
    """Each field of a status, of its operations and of the limits has a row, and each state is named."""
    page = (ROOT / "docs/contract.md").read_text(encoding="utf-8")
    limits = [f"| `{field.name}` | {field.default} |" for field in attrs.fields(manifest.Limits)]
    fields = [f"| `{field.name}` | " for kind in (Status, OperationStatus) for field in attrs.fields(kind)]
    states = [f"`{state}`" for states in (State, OperationState) for state in get_args(states)]
    assert [text for text in (*limits, *fields, *states) if text not in page] == []


@pytest.mark.repository
def test_the_contract_page_has_every_service() -> None:
    """Each service has a row, and each field of a request, each entry of a script and each answer's status is named."""
    page = (ROOT / "docs/contract.md").read_text(encoding="utf-8").partition("\n## Services\n")[2]
    services = [f"| `{name}` | " for name in CONTRACTS]
    fields = [f"`{field.name}`" for field in attrs.fields(Request) if field.name not in {"service", "key", "lookup"}]
    entries = {*SCRIPT_ENTRIES, *LOOKUP_ENTRIES, *(entry for one in CONTRACTS.values() for entry in one.entries)}
    assert [
        text for text in (*services, *fields, *(f"`{entry}`" for entry in sorted(entries))) if text not in page
    ] == []


@pytest.mark.repository
def test_the_page_of_obligations_is_current() -> None:
    """docs/obligations.md is what the registry says; `python docs/generate.py` writes it anew."""
    generate = runpy.run_path(str(ROOT / "docs/generate.py"))
    assert generate["page"]() == (ROOT / "docs/obligations.md").read_text(encoding="utf-8")
