"""Bad input through the real command line: nothing that can be begun, adapters that break the protocol, installing.

Every failure says what, where, what was expected and what to do, has its exit code, and leaves no process behind.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.bad_input_rig import MANIFEST, MARKS, Bench

pytestmark = MARKS


# ---- what cannot even be begun


def test_a_missing_adapter_is_usage(bench: Bench) -> None:
    """A path that leads nowhere is exit 2, and manifests nearby are named."""
    bench.adapter("")
    ran = bench.simkit("certify", "./nowhere.toml")
    assert ran.code == 2
    ran.tells("adapter-not-found", "nowhere.toml")


def test_no_arguments_show_the_help(bench: Bench) -> None:
    """`simkit` alone says what there is."""
    ran = bench.simkit()
    assert ran.code == 0
    assert "certify" in ran.out
    assert "Exit codes" in ran.out


MANIFESTS = {
    "not TOML": ("protocol = = 1", ["line 1"]),
    "not text": ("protocol = \x00", ["line 1"]),
    "empty": ("", ["3 mistakes", "'harness' is missing"]),
    "of another type": (MANIFEST.replace("control = true", 'control = "yes"'), ["expected bool, got str 'yes'"]),
    "no table": (MANIFEST.replace("[limits]", "[settings]").replace("settle_ms = 300", "x = [1]"), ["settings.x"]),
    "several at once": (
        MANIFEST.replace("name =", "nam =").replace("command =", "comand =").replace("settle_ms", "settle"),
        ["unknown key 'nam' (did you mean 'name'?)", "did you mean 'command'?", "did you mean 'settle_ms'?"],
    ),
    "unknown operation": (MANIFEST.replace('"call"]', '"cal"]'), ["did you mean 'call'?"]),
    "unknown claim": (MANIFEST.replace("claims.EFF-11", "claims.EFFECT-11"), ["'EFFECT-11' is neither"]),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_wrong_manifest_is_usage(bench: Bench, kind: str) -> None:
    """Everything that is wrong is told at once, each with its place and, for a name, the nearest right one."""
    text, words = MANIFESTS[kind]
    ran = bench.simkit("certify", bench.adapter("", text))
    assert ran.code == 2
    ran.tells("adapter-malformed", "adapter.toml", *words)


def test_another_protocol_is_usage(bench: Bench) -> None:
    """A manifest for a later kit says so, whatever else it may hold."""
    ran = bench.simkit("certify", bench.adapter("", "protocol = 9"))
    assert ran.code == 2
    ran.tells("adapter-protocol", "protocol 9")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("certify naive --config exit", "configuration-unknown", "default"),
        ("certify langgraph --config exti", "configuration-unknown", "did you mean 'exit'?"),
        ("certify dboss", "adapter-not-found", "did you mean 'dbos'?"),
        ("certify naive==3", "target-version", "leave the version out"),
        ("run -t reference --mutant ack-before-comit", "mutant-unknown", "ack-before-commit"),
        ("run -t naive --mutant ack-before-commit", "mutant-target", "-t reference"),
        ("run -t reference --seeds 1-x", "seeds-malformed", "0-999"),
        ("replay -t naive --scenario chain/undisturbd", "scenario-unknown", "did you mean 'chain/undisturbed'?"),
        ("replay zzz", "case-unknown", "0 saved"),
    ],
)
def test_wrong_words_are_usage(bench: Bench, words: str, code: str, told: str) -> None:
    """A name that does not exist is exit 2 with the nearest one that does."""
    ran = bench.simkit(*words.split())
    assert ran.code == 2
    ran.tells(code, told)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("certify naive --tier smok", 'Did you mean "smoke"?'),
        ("certify naive --format jsno", 'Did you mean "json"?'),
        ("certify naive --teir smoke", "Did you mean --tier?"),
        ("certfiy naive", 'Did you mean "certify"?'),
    ],
)
def test_wrong_options_are_usage(bench: Bench, words: str, told: str) -> None:
    """An option or a choice that does not exist is exit 2 with the nearest one, and a hint."""
    ran = bench.simkit(*words.split())
    assert ran.code == 2
    assert told in ran.err
    assert "hint:" in ran.err


# ---- adapters that do not keep the protocol

BROKEN = {
    "dies at start": (
        "sys.exit('no such module')",
        "worker-died-at-start",
        ["exit code 1", "no such module", "adapter.py"],
    ),
    "dies over each start": (
        "while True:\n    m = read()\n    if m['verb'] == 'start': sys.exit('I give up')\n    ok(m)",
        "worker-keeps-dying",
        ["4 times in one run (exit code 1 × 4)", "I give up"],
    ),
    "is killed over each start": (
        "while True:\n    m = read()\n    if m['verb'] == 'start': os.kill(os.getpid(), signal.SIGSEGV)\n    ok(m)",
        "worker-keeps-dying",
        ["4 times in one run (died of SIGSEGV × 4)"],
    ),
    "dies over each status": (
        "while True:\n    m = read()\n    if m['verb'] == 'status': sys.exit('x' * 5000)\n    ok(m)",
        "worker-keeps-dying",
        ["x" * 200 + "…"],
    ),
    "prints garbage": ("put('hello, world\\n'); time.sleep(99)", "adapter-garbage", ["hello, world", "standard error"]),
    "prints bytes": ("os.write(1, bytes(range(256))); time.sleep(99)", "adapter-garbage", ["not JSON"]),
    "prints a valid line, then garbage": ("ok(read()); put('oops\\n'); time.sleep(99)", "adapter-garbage", ["oops"]),
    "prints a huge line": ("put('x' * (5 << 20)); time.sleep(99)", "adapter-garbage", ["more than 4194304 bytes"]),
    "answers another question": (
        "m = read(); put(json.dumps({'seq': 7, 'ok': {}}) + '\\n'); time.sleep(99)",
        "adapter-malformed-answer",
        ["question 7, which is not open", "expected: seq 1, as the question had"],
    ),
    "answers with the wrong type": (
        "m = read(); put(json.dumps({'seq': '1', 'ok': {}}) + '\\n'); time.sleep(99)",
        "adapter-malformed-answer",
        ["integer `seq`"],
    ),
    "answers with an unknown field": (
        "m = read(); put(json.dumps({'seq': 1, 'ok': {}, 'extra': 1}) + '\\n'); time.sleep(99)",
        "adapter-malformed-answer",
        ["unknown field 'extra'"],
    ),
    "answers half a line": (
        'put(\'{"seq": 1, "o\'); time.sleep(99)',
        "adapter-silent",
        ['did not end it: b\'{"seq": 1, "o\''],
    ),
    "never answers": (
        "print('waiting for Godot', file=sys.stderr, flush=True); time.sleep(99)",
        "adapter-silent",
        ["hello", "waiting for Godot"],
    ),
    "closes its output": ("os.close(1); time.sleep(99)", "adapter-gone", ["end of stream"]),
    "closes its input": (
        "ok(read()); m = read(); os.close(0); ok(m); time.sleep(99)",
        "adapter-gone",
        ["its standard input"],
    ),
    "refuses hello": (
        "m = read(); put(json.dumps({'seq': 1, 'error': {'kind': 'definite', 'message': 'too old'}}) + '\\n'); time.sleep(99)",
        "adapter-refused-hello",
        ["too old"],
    ),
    "says it is of another version": (
        "m = read(); put(json.dumps({'seq': 1, 'ok': {'version': '9.9'}}) + '\\n'); time.sleep(99)",
        "adapter-is-another",
        ["version is '9.9'", "started for '1'"],
    ),
    "says it speaks another protocol": (
        "m = read(); put(json.dumps({'seq': 1, 'ok': {'protocol': 7}}) + '\\n'); time.sleep(99)",
        "adapter-is-another",
        ["protocol is 7", "started for 1"],
    ),
    "refuses start": (
        """ok(read()); m = read()
put(json.dumps({'seq': 2, 'error': {'kind': 'definite', 'message': 'no room'}}) + '\\n'); time.sleep(99)""",
        "start-refused",
        ["no room", "[operations]"],
    ),
    "fails every start": (
        """ok(read())
while m := read(): put(json.dumps({'seq': m['seq'], 'error': {'kind': 'indefinite', 'message': "KeyError: 'x'"}}) + '\\n')""",
        "start-fails",
        ["every time it was asked", "KeyError: 'x'"],
    ),
    "tells an impossible state": (
        "serve(state='flying')",
        "adapter-malformed-answer",
        ["status.state: none of unknown, running"],
    ),
    "tells of a field nobody knows": ("serve(state='running', colour='red')", "adapter-malformed-answer", ["'colour'"]),
    "sends a service bad JSON": (
        "ok(read()); ok(read()); post('/ledger', '{'); serve(state='running')",
        "bad-request",
        ["not JSON"],
    ),
    "calls a service that does not exist": (
        "ok(read()); ok(read()); post('/leger', {'run': 'r', 'op': 'a'}); serve(state='running')",
        "bad-request",
        ["no service 'leger'"],
    ),
    "calls for an operation nobody planned": (
        """ok(read()); m = read(); ok(m)
post('/ledger', {'run': m['run'], 'op': 'theft', 'params': {}, 'carries': {}, 'script': []}); serve(state='running')""",
        "stray-call",
        ["'theft'", "quote"],
    ),
    "ignores signals": (
        """for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(n, signal.SIG_IGN)
put('x\\n'); time.sleep(99)""",
        "adapter-garbage",
        [],
    ),
    "has grandchildren that escape": (
        """subprocess.Popen(['sleep', '99']); subprocess.Popen(['sleep', '98'], start_new_session=True)
put('x\\n'); time.sleep(99)""",
        "adapter-garbage",
        [],
    ),
    "has a grandchild that keeps its streams": (
        "subprocess.Popen(['sleep', '99'], start_new_session=True); sys.exit('gone')",
        "worker-died-at-start",
        ["gone"],
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_adapter_is_exit_4(bench: Bench, kind: str) -> None:
    """Whatever breaks the protocol is told with what was seen and a hint, is never a verdict, and is gone afterwards."""
    program, code, words = BROKEN[kind]
    is_waited_for = code == "adapter-silent" or "keeps its streams" in kind
    manifest = MANIFEST.replace("30000", "4000") if is_waited_for else MANIFEST
    ran = bench.simkit("replay", "-t", bench.adapter(program, manifest), "--scenario", "chain/undisturbed")
    assert ran.code == 4
    ran.tells(code, *words)
    assert ran.out.endswith(f"exit 4: {code}\n")


def test_a_garbage_adapter_is_told_before_the_judges_are_proven(bench: Bench, tmp_path: Path) -> None:
    """`certify` runs a scenario first of all: a broken adapter is known in a second, on a fresh machine too."""
    ran = bench.simkit(
        "certify", bench.adapter("put('hello, world\\n'); time.sleep(99)"), SIMKIT_CACHE=str(tmp_path / "cache")
    )
    assert ran.code == 4
    ran.tells("adapter-garbage", "hello, world")
    assert "proving" not in ran.err
    assert not (tmp_path / "cache").exists()


#: Its work is done in a thread, which ends by an exception.
CRASHED = """
import threading
import simkit_adapter as kit

class Adapter:
    def start(self, run, plan, key):
        threading.Thread(target=lambda: 1 / 0).start()
    def status(self, run):
        return "running"

kit.serve(Adapter())
"""


@pytest.mark.parametrize("command", ["certify", "doctor -t"])
def test_an_adapter_that_never_calls_a_service_is_told_after_the_first_run(bench: Bench, command: str) -> None:
    """With what its worker said last, which nobody else has heard, and the folder of its logs; nothing is proven then."""
    ran = bench.simkit(*command.split(), bench.adapter(CRASHED))
    told = ran.err if command == "certify" else ran.out
    assert ran.code == 4, told
    assert told.count("called no service, though nothing disturbed it") == 1
    assert "ZeroDivisionError" in told
    (logs,) = {word.rstrip(")") for word in told.split() if word.startswith(".simkit/runs/")}
    assert "ZeroDivisionError" in (bench.folder / logs / "worker-1.log").read_text()
    if command == "certify":
        ran.tells("never-calls", "the first to reader")
        assert "1 run (1 error)" in ran.out
        assert "proving" not in ran.err


#: A class of the helper's with one method only.
LACKING = """
import simkit_adapter as kit

class Mine:
    def %s(self, **asked):
        return {}

kit.serve(Mine())
"""


@pytest.mark.parametrize(
    ("has", "lacks", "fields"),
    [("status", "start", "run, plan, key"), ("start", "status", "run")],
    ids=["start", "status"],
)
def test_a_method_that_the_adapter_lacks_is_named(bench: Bench, has: str, lacks: str, fields: str) -> None:
    """With what it is called with: the manifest is not what is wrong."""
    ran = bench.simkit("doctor", "-t", bench.adapter(LACKING % has))
    assert ran.code == 4, ran.out
    assert f"the class Mine has no method `{lacks}(self, {fields})`" in ran.out
    assert "hint: write it in the class that is given to `serve`" in ran.out
    assert "[operations]" not in ran.out


def test_a_harness_that_forgets_what_it_acknowledged_is_judged_all_the_same(bench: Bench) -> None:
    """It calls no service either; but that is what is to be found out, and no fault of an adapter."""
    ran = bench.simkit("run", "-t", bench.adapter("serve(state='unknown')"), "--seeds", "0", "--jobs", 1)
    assert "never-calls" not in ran.out + ran.err
    assert "DUR-1" in ran.out


def test_a_unit_that_cannot_be_started_is_exit_4(bench: Bench) -> None:
    """A command that is not there is told with the command and the folder."""
    folder = bench.adapter("", MANIFEST.replace("{python}", "/nowhere/python"))
    ran = bench.simkit("run", "-t", folder, "--seeds", 0)
    assert ran.code == 4
    ran.tells("worker-cannot-start", "`/nowhere/python -S adapter.py`", str(folder))


ENGINE = """
[units.engine]
command = ["{python}", "-S", "engine.py"]
"""
SQUATTED = """
import os, socket, subprocess, sys
port = int(os.environ["SIMKIT_ENGINE_PORT"])
squatter = socket.socket()
squatter.bind(("127.0.0.1", port))
squatter.listen()
socket.create_server(("127.0.0.1", port))
"""


def test_an_engine_whose_port_is_taken_is_told(bench: Bench) -> None:
    """An engine that cannot have its port ends, again and again, and its own words say why."""
    folder = bench.adapter("serve(state='running')", MANIFEST + ENGINE)
    (folder / "engine.py").write_text(SQUATTED)
    ran = bench.simkit("run", "-t", folder, "--seeds", 0)
    assert ran.code == 4
    ran.tells("worker-keeps-dying", "unit engine", "in use")


def test_a_later_problem_is_told_and_hides_no_violation(bench: Bench) -> None:
    """An adapter that breaks down in the third run: violations of the first two stand, the problem has its hint."""
    program = """
seen = os.path.join(os.environ["SIMKIT_STATE"], "seen")  # a folder that each run has of its own
if not os.path.exists(seen):
    open(seen, "w").close()
    with open("runs", "a") as runs: runs.write("x")
if os.path.getsize("runs") > 2: put("oops\\n")
serve(state="done", result={})
"""
    ran = bench.simkit("run", "-t", bench.adapter(program), "--seeds", "0-2", "--jobs", 1)
    assert ran.code == 1
    ran.tells("adapter-garbage", "oops")
    assert "FAIL EFF-11" in ran.out
    assert "3 runs (1 error, 2 fail)" in ran.out


# ---- installing

PIP = '[install]\npip = ["simkit-no-such-package==1.0"]\n'


def test_no_network_on_first_use_is_exit_4(bench: Bench, tmp_path: Path) -> None:
    """Without a registry the hint says that it takes a network once; nothing half made stays."""
    folder, cache = bench.adapter("", MANIFEST + PIP), tmp_path / "cache"
    uv = tmp_path / "bin/uv"  # says what uv says, at once
    uv.parent.mkdir()
    uv.write_text('#!/bin/sh\nmkdir -p "$5"\necho "error: error sending request for url" >&2\nexit 2\n')
    uv.chmod(0o755)
    path = f"{uv.parent}:{os.environ['PATH']}"
    ran = bench.simkit("certify", folder, SIMKIT_CACHE=str(cache), PATH=path, UV_INDEX_URL="http://127.0.0.1:9/simple")
    assert ran.code == 4
    ran.tells("install-no-network", "simkit-no-such-package", "error sending request", "PIP_INDEX_URL")
    assert [one.suffix for one in (cache / "environments").iterdir()] == [".lock"]


def test_a_dead_registry_is_no_network_for_pip_too(bench: Bench, tmp_path: Path) -> None:
    """The same with pip and a registry where nobody listens."""
    ran = bench.simkit(
        *("run", "-t", bench.adapter("", MANIFEST + PIP), "--seeds", 0),
        SIMKIT_CACHE=str(tmp_path / "cache"),
        PIP_INDEX_URL="http://127.0.0.1:9/simple",
        PIP_CONFIG_FILE=os.devnull,
        PATH="/usr/bin:/bin",
    )
    assert ran.code == 4
    ran.tells("install-no-network", "simkit-no-such-package")


def test_a_half_made_environment_is_made_anew(bench: Bench, tmp_path: Path) -> None:
    """An environment without its marker is no environment: it is cleared away and made again."""
    folder, cache, uv = bench.adapter("", MANIFEST + PIP), tmp_path / "cache", tmp_path / "bin/uv"
    uv.parent.mkdir()
    uv.write_text('#!/bin/sh\nmkdir -p "$5"; kill -9 $PPID\n')  # simkit is killed over it
    uv.chmod(0o755)
    path = f"{uv.parent}:{os.environ['PATH']}"
    assert bench.simkit("run", "-t", folder, "--seeds", 0, SIMKIT_CACHE=str(cache), PATH=path).code == -signal.SIGKILL
    (left,) = (one for one in (cache / "environments").iterdir() if one.is_dir())
    uv.write_text("#!/bin/sh\necho 'error: No space left on device' >&2\nexit 2\n")
    ran = bench.simkit("run", "-t", folder, "--seeds", 0, SIMKIT_CACHE=str(cache), PATH=path)
    assert ran.code == 4
    assert "left half made; making it anew" in ran.err
    ran.tells("cache-full", "SIMKIT_CACHE")
    assert not left.exists()


def test_an_unusable_cache_is_exit_4(bench: Bench, tmp_path: Path) -> None:
    """A cache folder that cannot be made is told before anything is installed."""
    (tmp_path / "taken").write_text("")
    ran = bench.simkit("certify", bench.adapter("", MANIFEST + PIP), SIMKIT_CACHE=str(tmp_path / "taken"))
    assert ran.code == 4
    ran.tells("cache-unusable", "taken")
