"""The store, `.simkit/`: cases, certificates, run journals and crash reports of the kit itself.

    .simkit/cases/<id>.json · certificates/<subject>-<digest>.json · runs/<time>-<command>-<pid>.jsonl · bugs/<time>-<pid>.txt
    .simkit/cases/<id>.run/ and runs/<time>-<run>-<pid>/: what was seen of a run, see `conformance.evidence`

Files are written whole or not at all; a journal is append-only, one event a line, handed to the system line by line, so
that neither Ctrl-C nor a crash of the kit loses what was judged. A disk that is full or refuses is a `SimkitError`.
"""

from __future__ import annotations

import datetime as dt
import difflib
import errno
import json
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import attrs

from conformance import events, invocation
from conformance.certificate import Certificate
from conformance.certificate_file import is_certificate
from conformance.certificate_file import write as write_certificate
from conformance.files import telling, write_atomic
from simkit.errors import Problem, SimkitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from simkit.case import Case

NAME = ".simkit"
#: Journals kept; the oldest go when a new one begins.
JOURNALS_MAX = 100
#: Folders of runs kept beside cases, and as many of runs without one; the oldest go.
RUNS_MAX = 50
_SHOWN_MAX = 8  # candidates named in an error
_LABEL_MAX = 60
_SAME_NAME_MAX = 1000
_UNSAFE = re.compile(r"[^A-Za-z0-9._#@+-]+")
_ROOT_MARKS = ("pyproject.toml", ".git")


class Savable(Protocol):
    """What the store needs of a case."""

    @property
    def id(self) -> str: ...

    def save(self, folder: Path) -> Path: ...


@attrs.frozen
class Store:
    """The folder `root`; nothing is created until something is written."""

    root: Path

    @classmethod
    def find(cls, given: Path | None = None, start: Path | None = None) -> Store:
        """The store at `given`; else the nearest `.simkit` at or above `start` (the current folder); else where one goes:
        at the root of the project around `start`, or in `start` itself.
        """
        if given is not None:
            return cls(given)
        here = (start or Path.cwd()).resolve()
        around = (here, *here.parents)
        if found := next((folder for folder in around if (folder / NAME).is_dir()), None):
            return cls(found / NAME)
        home = next((folder for folder in around if any((folder / mark).exists() for mark in _ROOT_MARKS)), here)
        return cls(home / NAME)

    @property
    def cases(self) -> Path:
        return self.root / "cases"

    @property
    def certificates(self) -> Path:
        return self.root / "certificates"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def bugs(self) -> Path:
        return self.root / "bugs"

    def check(self) -> None:
        """Prove that the store can be written, before anything is spent on a campaign. Raises SimkitError."""
        probe = self.root / f".probe.{os.getpid()}"
        write_atomic(probe, "probe\n" * 512)
        with telling(probe):
            probe.unlink()

    # ---- cases

    def save_case(self, case: Savable) -> Path:
        """Save a case; returns its file. Raises SimkitError when it cannot be written."""
        with telling(self.cases):
            self.cases.mkdir(parents=True, exist_ok=True)
            return case.save(self.cases)

    def keep(self, case: Savable, emit: events.Emit) -> str | None:
        """Save a case and return its id; when that fails say so as an event and return None: the campaign goes on."""
        try:
            self.save_case(case)
        except SimkitError as error:
            emit(events.Trouble(error.problem))
            return None
        return case.id

    def find_case(self, wanted: str) -> Path:
        """The file of a case given by path, id or unique beginning of an id. Raises SimkitError naming the nearest."""
        path = _beside(Path(wanted))
        if path.suffix == ".json" or len(path.parts) > 1:
            if not path.is_file():
                raise SimkitError(Problem("case-missing", "there is no such file", wanted, "a case file", _LIST_HINT))
            return path
        ids = self._ids()
        matches = [one for one in ids if one.startswith(wanted)] if wanted else []
        if len(matches) == 1 or wanted in matches:
            return self.cases / f"{wanted if wanted in matches else matches[0]}.json"
        raise SimkitError(self._ambiguous(wanted, matches) if matches else self._unknown(wanted, ids))

    def load_case(self, wanted: str) -> Case:
        """Find and read a case. Raises SimkitError when it is not there, truncated, malformed or of another version."""
        path = self.find_case(wanted)
        from simkit.case import Case

        if is_certificate(path):
            what, expected = "this is a certificate", "a case file"
            hint = invocation.line("verify", wanted) + " checks it and shows what it states"
            raise SimkitError(Problem("case-malformed", what, wanted, expected, hint))
        with telling(path):
            return Case.load(path)

    def list_cases(self) -> Iterator[tuple[Path, Case | Problem]]:
        """Every case of the store, newest last; one that cannot be read comes as its problem, it does not end the list."""
        for path in sorted((self.cases / f"{one}.json" for one in self._ids()), key=_age):
            try:
                yield path, self.load_case(str(path))
            except SimkitError as error:
                yield path, error.problem

    def _ids(self) -> list[str]:
        with telling(self.cases):
            found = self.cases.glob("[!.]*.json") if self.cases.is_dir() else ()
            return sorted(path.stem for path in found)

    def _ambiguous(self, wanted: str, matches: list[str]) -> Problem:
        more = f" and {len(matches) - _SHOWN_MAX} more" if len(matches) > _SHOWN_MAX else ""
        what = f"{wanted!r} is the beginning of {len(matches)} cases: {', '.join(matches[:_SHOWN_MAX])}{more}"
        return Problem("case-ambiguous", what, str(self.cases), "an id, or a beginning only one id has", _LIST_HINT)

    def _unknown(self, wanted: str, ids: list[str]) -> Problem:
        near = difflib.get_close_matches(wanted, ids, n=3, cutoff=0.5)
        hint = f"nearest: {', '.join(near)}; {_LIST_HINT}" if near else _LIST_HINT
        what = f"no case {wanted!r} among the {len(ids)} saved"
        return Problem("case-unknown", what, str(self.cases), "the id of a saved case, its beginning, or a path", hint)

    # ---- runs

    def keep_run(self, label: str, files: Mapping[str, bytes], case_id: str | None, emit: events.Emit) -> str:
        """Keep what was seen of a run, beside its case if it has one. Returns the folder as seen from here, or "" when there
        is nothing to keep or the store refuses it, which is told.
        """
        if not files:
            return ""
        name = f"{case_id}.run" if case_id else f"{_stamp(None)}-{_UNSAFE.sub('_', label)[:_LABEL_MAX]}-{os.getpid()}"
        parent = self.cases if case_id else self.runs
        draft = parent / f".{name}.{os.getpid()}.draft"
        try:
            with telling(parent / name):
                shutil.rmtree(draft, ignore_errors=True)  # of one that had our number and was killed
                draft.mkdir(parents=True)
                for file, content in files.items():
                    (draft / file).write_bytes(content)
                folder = _put(draft, parent / name).absolute()
            _thin_out(parent)
        except SimkitError as error:
            emit(events.Trouble(error.problem))
            return ""
        finally:
            shutil.rmtree(draft, ignore_errors=True)  # there is none any more, unless something went wrong
        here = Path.cwd()
        return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)

    # ---- certificates, journals, bugs

    def save_certificate(self, certificate: Certificate, out: Path | None = None) -> Path:
        """Write a certificate to `out`, or into the store under its subject and digest. Returns the path."""
        path = out or self.certificates / _certificate_name(certificate)
        write_certificate(certificate, path)
        return path

    def open_journal(self, command: str, now: dt.datetime | None = None) -> Journal:
        """Begin the journal of one command. Raises SimkitError when it cannot be written."""
        path = self.runs / f"{_stamp(now)}-{command}-{os.getpid()}.jsonl"
        with telling(path):
            self.runs.mkdir(parents=True, exist_ok=True)
            for old in sorted(self.runs.glob("*.jsonl"))[: -(JOURNALS_MAX - 1)]:
                old.unlink(missing_ok=True)
        return Journal.open(path)

    def save_bug(self, text: str, now: dt.datetime | None = None) -> Path:
        """Keep the traceback of a bug in the kit. Raises SimkitError when it cannot be written."""
        path = self.bugs / f"{_stamp(now)}-{os.getpid()}.txt"
        write_atomic(path, text)
        return path


def _beside(path: Path) -> Path:
    """The case itself, where the folder of what was seen of it is named: that is what a report prints as kept."""
    return path.with_suffix(".json") if path.suffix == ".run" and path.is_dir() else path


@attrs.define
class Journal:
    """The events of one command as JSON lines, each handed to the system as it happens."""

    path: Path
    _file: TextIO

    @classmethod
    def open(cls, path: Path) -> Journal:
        with telling(path):
            return cls(path, path.open("a", encoding="utf-8"))

    def append(self, event: events.Event) -> None:
        """Write one event. Progress and news of installing are for people only and are left out."""
        if isinstance(event, events.Progress | events.Installing):
            return
        with telling(self.path):
            self._file.write(json.dumps(events.to_json(event), ensure_ascii=False) + "\n")
            self._file.flush()

    def close(self) -> None:
        """Sync and close; errors were met by `append` already, or lose nothing that is not on the screen."""
        with telling(self.path):
            try:
                self._file.flush()
                os.fsync(self._file.fileno())
            finally:
                self._file.close()


def read_journal(path: Path) -> list[events.Event]:
    """The events of a journal. A last line that breaks off (the kit was killed) is left out; any other bad line raises."""
    with telling(path):
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    found: list[events.Event] = []
    for number, line in enumerate(lines[:-1], start=1):
        try:
            data: Any = json.loads(line)
            found.append(events.from_json(data))
        except Exception as error:  # JSON and cattrs have errors of many types; all mean the same here
            where = f"{path}:{number}"
            what = f"not an event: {line[:80]!r}"
            raise SimkitError(Problem("journal-malformed", what, where, f'a "{events.SCHEMA}" line')) from error
    return found


_LIST_HINT = "`simkit cases` lists what is saved; `--store DIR` looks elsewhere"


def _age(path: Path) -> tuple[int, str]:
    try:
        return path.stat().st_mtime_ns, path.name
    except OSError:  # gone meanwhile
        return 0, path.name


def _put(draft: Path, wanted: Path) -> Path:
    """Let a finished folder take its name: that of a case in place of the one there was, else with a number after it where it
    is taken. Others may be doing the same at this moment. Returns where it is.
    """
    folder = wanted
    for number in range(2, _SAME_NAME_MAX):
        try:
            return draft.rename(folder)
        except OSError as error:
            if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                raise
        if wanted.suffix == ".run":
            old = draft.with_suffix(".old")
            shutil.rmtree(old, ignore_errors=True)  # as the draft: of one that had our number
            with suppress(FileNotFoundError):  # another one has just moved it away
                folder.rename(old)
            shutil.rmtree(old, ignore_errors=True)
        else:
            folder = wanted.with_name(f"{wanted.name}-{number}")
    raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))


def _thin_out(parent: Path) -> None:
    folders = sorted((one for one in parent.iterdir() if one.is_dir()), key=_age)
    for old in folders[:-RUNS_MAX]:
        shutil.rmtree(old, ignore_errors=True)


def _stamp(now: dt.datetime | None) -> str:
    return (now or dt.datetime.now(dt.UTC)).strftime("%Y%m%dT%H%M%SZ")


def _certificate_name(certificate: Certificate) -> str:
    subject = certificate.subject
    stem = "-".join(part for part in (subject.name, subject.version, subject.configuration) if part)
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '_', stem)}-{certificate.to_json()['footer']['digest'][:8]}.json"
