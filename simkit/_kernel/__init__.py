"""The kernel: trio's tasks, nurseries and cancel scopes, stepped one at a time under a virtual clock.

All private use of trio in this project lives in this folder.

- `owner`: the context variable that says which process a task belongs to
- `timers`: one heap of everything that will happen, ordered by (time, sequence); also stands in for trio's deadlines
- `tasks`: trio's tasks, numbered within their run
- `runner`: trio's Runner with the world outside taken away: no epoll, sockets, signals or threads
- `sleeper`: sleeping, by one heap entry
- `kernel`: what both loops share: spawning, killing without unwinding, pausing, ending, telling a deadlock
- `loop`: the fast loop of our own
- `shortcuts`: equivalents of what trio does most often, which stay in trio; `scopes` and `locks` hold some
- `fallback`: trio's own loop, fed one task a tick; slower, same traces, and the oracle of `loop`
- `grave`: dead coroutines are freed without any of their code running
- `fingerprint`: whether the installed trio is one that `loop` was written against
"""
