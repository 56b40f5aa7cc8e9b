"""The space-time table of a run: who did what when, which messages went where, what died, and which events decided.

The map, from a run to a picture: `watch` runs a program again and keeps what a trace leaves out (who owns a task, what a
message says, where a choice was drawn); `reading` makes rows of a trace; `lanes` says which column each belongs to;
`table` joins them, marks what decides, and chooses the rows that fit; `text` and `page` draw the same table, as a block of
at most 100 columns and as one HTML file that needs no network and no script. `model` has the values that pass between them.
"""

from __future__ import annotations

from simkit.spacetime.model import Lane, Row, Table
from simkit.spacetime.page import as_html
from simkit.spacetime.table import table
from simkit.spacetime.text import as_text
from simkit.spacetime.watch import Known, Watch

__all__ = ["Known", "Lane", "Row", "Table", "Watch", "as_html", "as_text", "table"]
