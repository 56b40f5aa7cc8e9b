"""What of trio's own tests the kernel does not pass, and why: each is run and must fail, or is too dangerous to run.

`MODULES` are trio's test modules that are run, `NOT_RUN` the others, each with its reason: together all that trio ships.
"""

from __future__ import annotations

CORE, HIGH = "_core/_tests", "_tests"
MODULES = (
    *(f"{CORE}/test_{name}.py" for name in ("run", "parking_lot", "local", "asyncgen", "cancelled", "unbounded_queue")),
    *(f"{CORE}/test_{name}.py" for name in ("mock_clock", "exceptiongroup_gc", "tutil")),
    *(f"{HIGH}/test_{name}.py" for name in ("sync", "channel", "timeouts", "abc", "contextvars", "highlevel_generic")),
    *(f"{HIGH}/test_{name}.py" for name in ("testing", "util", "scheduler_determinism", "tracing", "file_io", "path")),
    *(f"{HIGH}/test_highlevel_{name}.py" for name in ("serve_listeners", "open_tcp_stream", "open_tcp_listeners")),
    *(f"{HIGH}/test_{name}.py" for name in ("threads", "fakenet", "testing_raisesgroup", "deprecate")),
    *(f"{HIGH}/test_{name}.py" for name in ("deprecate_strict_exception_groups_false", "ssl", "dtls")),
    f"{HIGH}/test_highlevel_ssl_helpers.py",
)
#: Run in a world of their own, on its simulated network; the others on the bare kernel.
IN_WORLD = ("test_highlevel_open_tcp_listeners", "test_ssl", "test_dtls", "test_highlevel_ssl_helpers")

_SYSTEM = "there is no operating system under a simulation"
_RAW = "its sockets come from the standard library, in pairs or by number; ours from trio.open_tcp_stream and trio.serve_tcp"
_TOOLS = "about packaging, types or tools: nothing of it runs on a loop"
_WINDOWS = "about Windows"
#: Test modules that are not run, and why.
NOT_RUN: dict[str, str] = {
    "_core/_tests/test_guest_mode.py": "another loop is the host there; here the kernel is the only one",
    "_core/_tests/test_instrumentation.py": "`simkit.run` takes no instruments: traces and watchers tell instead",
    "_core/_tests/test_io.py": _SYSTEM,
    "_core/_tests/test_ki.py": "signals are the interpreter's: an interrupt ends the run at once, no code is protected",
    "_core/_tests/test_thread_cache.py": "about trio's store of real threads; simulated threads do not come from there",
    "_core/_tests/test_windows.py": _WINDOWS,
    "_tests/test_exports.py": _TOOLS,
    "_tests/test_highlevel_open_unix_stream.py": "the simulated network has no Unix sockets",
    "_tests/test_highlevel_socket.py": _RAW,
    "_tests/test_repl.py": "an interactive console",
    "_tests/test_signals.py": _SYSTEM,
    "_tests/test_socket.py": _RAW,
    "_tests/test_subprocess.py": _SYSTEM,
    "_tests/test_trio.py": _TOOLS,
    "_tests/test_unix_pipes.py": _SYSTEM,
    "_tests/test_wait_for_object.py": _WINDOWS,
    "_tests/test_windows_pipes.py": _WINDOWS,
    **{f"_tests/tools/test_{name}.py": _TOOLS for name in ("gen_exports", "mypy_annotate", "sync_requirements")},
}

CLOCK = "the clock is virtual and the kernel's own: it stands still while code runs, and always jumps when nothing is runnable"
SOON = "run_sync_soon has no task of its own: a callback runs before the next step, and its error ends the run as it is"
CRASH = "the error of a crashed system task ends the run as it is, not inside a TrioInternalError"
INTERRUPT = "an interrupt is the user's: it ends the run at once"
CONTEXT = "a simulation begins with an empty context: nothing of the caller's gets in"
THREADS = "inside a simulated thread the kernel counts as running"
SOCKETS = "real sockets are refused"
PAIRS = "its streams are a pair of real sockets, with a blocking thread at the other end"
IPV6 = "the simulated network speaks IPv4"
HOOKS = "async generators of another library in the same thread are not handed on to it, and closing gives no warning"
WORDS = "tasks are shown by number, as an address differs from run to run"
INTERNALS = "about the inside of trio's loop, which another loop takes the place of"
IDLE = "the clock does not move for wait_all_tasks_blocked: a cushion is only an order"
ROUNDING = "deadlines are integer nanoseconds, the test compares floats to the last bit"
WAITING = (
    "threads that wait for one another by the standard library's means: nobody else runs while a simulated thread does"
)
FOREIGN = "threads that the test starts by itself: only those that trio.to_thread starts are simulated"
NAMES = "simulated threads are not trio's: neither their names nor the way in which they are started"
WRAPPER = "about the arguments of `trio.run` itself, in whose place the kernel is run"
CHANCE = "trio's scheduler is random, the kernel's is the strategy's"

#: By "module::test", or "module::test[parameters]"; run, and must fail.
FAILING: dict[str, str] = {
    "test_run::test_current_time": CLOCK,
    "test_run::test_current_clock": CLOCK,
    "test_run::test_current_statistics": INTERNALS,
    "test_run::test_cancel_scope_repr": THREADS,
    "test_run::test_error_in_run_loop": INTERNALS,
    "test_run::test_system_task_crash": CRASH,
    "test_run::test_system_task_crash_ExceptionGroup": CRASH,
    "test_run::test_system_task_crash_plus_Cancelled": CRASH,
    "test_run::test_TrioToken_run_sync_soon_idempotent_requeue": SOON,
    "test_run::test_TrioToken_run_sync_soon_crashes": SOON,
    "test_run::test_TrioToken_run_sync_soon_starvation_resistance": SOON,
    "test_run::test_TrioToken_run_sync_soon_late_crash": SOON,
    "test_run::test_contextvar_support": CONTEXT,
    "test_run::test_system_task_contexts": CONTEXT,
    "test_run::test_trio_context_detection": THREADS,
    "test_asyncgen::test_asyncgen_basics": HOOKS,
    "test_asyncgen::test_last_minute_gc_edge_case": SOON,
    "test_asyncgen::test_fallback_when_no_hook_claims_it": HOOKS,
    "test_asyncgen::test_delegation_to_existing_hooks": HOOKS,
    "test_cancelled::test_Cancelled_str": WORDS,
    "test_mock_clock::test_mock_clock_autojump": CLOCK,
    "test_mock_clock::test_mock_clock_autojump_preset": CLOCK,
    "test_testing::test_wait_all_tasks_blocked_with_cushion": IDLE,
    "test_testing::test_open_stream_to_socket_listener": SOCKETS,
    "test_scheduler_determinism::test_the_trio_scheduler_is_not_deterministic": CHANCE,
    "test_highlevel_open_tcp_stream::test_open_tcp_stream_real_socket_smoketest": SOCKETS,
    "test_highlevel_open_tcp_stream::test_local_address_real": SOCKETS,
    "test_highlevel_open_tcp_stream::test_custom_errors_expedite": ROUNDING,
    "test_highlevel_open_tcp_stream::test_all_fail": ROUNDING,
    "test_highlevel_open_tcp_listeners::test_open_tcp_listeners_rebind": SOCKETS,
    "test_deprecate_strict_exception_groups_false::test_deprecation_warning_run": WRAPPER,
    "test_dtls::test_smoke[ipv6]": IPV6,
    "test_ssl::test_ssl_client_basics": PAIRS,
    "test_ssl::test_ssl_server_basics": PAIRS,
    "test_ssl::test_attributes": PAIRS,
    "test_ssl::test_full_duplex_basics": PAIRS,
    "test_ssl::test_checkpoints": PAIRS,
    "test_ssl::test_send_all_empty_string": PAIRS,
    "test_ssl::test_ssl_handshake_failure_during_aclose": PAIRS,
    "test_threads::test_do_in_trio_thread": FOREIGN,
    "test_threads::test_await_in_trio_thread_while_main_exits": FOREIGN,
    "test_threads::test_named_thread": NAMES,
    "test_threads::test_named_thread_os": NAMES,
    "test_threads::test_run_in_worker_thread": NAMES,
    "test_threads::test_run_in_worker_thread_fail_to_spawn": NAMES,
    "test_threads::test_run_in_worker_thread_limiter": WAITING,
    "test_threads::test_from_thread_host_cancelled": WAITING,
    "test_threads::test_from_thread_check_cancelled_no_abandon": WAITING,
    "test_threads::test_from_thread_check_cancelled_abandon_on_cancel": WAITING,
}

#: Not run: it would end the test session, or never end; or when its interrupt lands is a matter of luck.
UNSAFE: dict[str, str] = {
    "test_cancelled::test_reason_delayed_ki": INTERRUPT,
    "test_run::test_system_task_crash_KeyboardInterrupt": INTERRUPT,
    "test_threads::test_run_in_trio_thread_ki": INTERRUPT,
    "test_threads::test_run_in_worker_thread_cancellation": WAITING,
    "test_threads::test_run_in_worker_thread_abandoned": WAITING,
    "test_threads::test_reentry_doesnt_deadlock": "two seconds that cost nothing: its threads hand over 100,000 times",
}


def table() -> str:
    """The list as Markdown, for docs/trio.md."""
    rows = sorted((reason, name) for name, reason in {**FAILING, **UNSAFE}.items())
    return "\n".join(["| why | test of trio |", "|---|---|", *(f"| {reason} | `{name}` |" for reason, name in rows)])


def modules_table() -> str:
    """The modules that are not run as Markdown, for docs/trio.md."""
    by_reason: dict[str, list[str]] = {}
    for module, reason in NOT_RUN.items():
        by_reason.setdefault(reason, []).append(module.rpartition("/")[2].removesuffix(".py"))
    rows = sorted((reason, ", ".join(f"`{name}`" for name in names)) for reason, names in by_reason.items())
    return "\n".join(
        ["| why | modules of trio's tests |", "|---|---|", *(f"| {reason} | {names} |" for reason, names in rows)]
    )
