"""What of trio's own tests the kernel does not pass, and why: each is run and must fail, or is too dangerous to run.

`MODULES` are trio's test modules that are run; the rest of its suite is about the operating system (sockets, signals,
subprocesses, pipes), about typing and packaging, or about tools that do not touch the scheduler.
"""

from __future__ import annotations

CORE, HIGH = "_core/_tests", "_tests"
MODULES = (
    *(f"{CORE}/test_{name}.py" for name in ("run", "parking_lot", "local", "asyncgen", "cancelled", "unbounded_queue")),
    *(f"{CORE}/test_{name}.py" for name in ("mock_clock", "exceptiongroup_gc", "tutil")),
    *(f"{HIGH}/test_{name}.py" for name in ("sync", "channel", "timeouts", "abc", "contextvars", "highlevel_generic")),
    *(f"{HIGH}/test_{name}.py" for name in ("testing", "util", "scheduler_determinism", "tracing", "file_io", "path")),
    *(f"{HIGH}/test_highlevel_{name}.py" for name in ("serve_listeners", "open_tcp_stream")),
)

CLOCK = "the clock is virtual and the kernel's own: it stands still while code runs, and always jumps when nothing is runnable"
SOON = "run_sync_soon has no task of its own: a callback runs before the next step, and its error ends the run as it is"
CRASH = "the error of a crashed system task ends the run as it is, not inside a TrioInternalError"
INTERRUPT = "an interrupt is the user's: it ends the run at once"
CONTEXT = "a simulation begins with an empty context: nothing of the caller's gets in"
THREADS = "inside a simulated thread the kernel counts as running"
SOCKETS = "real sockets are refused"
HOOKS = "async generators of another library in the same thread are not handed on to it, and closing gives no warning"
WORDS = "tasks are shown by number, as an address differs from run to run"
INTERNALS = "about the inside of trio's loop, which another loop takes the place of"
IDLE = "the clock does not move for wait_all_tasks_blocked: a cushion is only an order"
ROUNDING = "deadlines are integer nanoseconds, the test compares floats to the last bit"
CHANCE = "trio's scheduler is random, the kernel's is the strategy's"

#: By "module::test"; run, and must fail.
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
}

#: Not run: it would end the test session.
UNSAFE: dict[str, str] = {
    "test_cancelled::test_reason_delayed_ki": INTERRUPT,
    "test_run::test_system_task_crash_KeyboardInterrupt": INTERRUPT,
}


def table() -> str:
    """The list as Markdown, for docs/trio.md."""
    rows = sorted((reason, name) for name, reason in {**FAILING, **UNSAFE}.items())
    return "\n".join(["| why | test of trio |", "|---|---|", *(f"| {reason} | `{name}` |" for reason, name in rows)])
