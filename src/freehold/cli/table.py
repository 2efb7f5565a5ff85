"""Tables that fit the terminal: no cell breaks inside a word, and empty columns are left out.

Numbers, times and states keep their width. If a table is too wide, names are shortened in the
middle and details at their end, or wrapped between words where the caller asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from freehold.cli.text import shorten_end, shorten_middle

_GAP = 2
_LEAST_NAME_WIDTH = 8
_LEAST_DETAIL_WIDTH = 18
_LEAST_WRAPPED_WIDTH = 24
#: Of columns that are shortened or wrapped beside others of their kind.
_LEAST_SHARED_WIDTH = 10


class ListTable:
    """Rows under bold headings.

    ``names`` and ``details`` are the columns that may be shortened, ``wrapped`` those that may
    take several lines.
    """

    def __init__(
        self,
        *columns: str,
        right: Iterable[str] = (),
        names: Iterable[str] = (),
        details: Iterable[str] = (),
        wrapped: Iterable[str] = (),
    ) -> None:
        self._columns = columns
        self._right = frozenset(right)
        self._names = frozenset(names)
        self._details = frozenset(details)
        self._wrapped = frozenset(wrapped)
        self._rows: list[tuple[tuple[Text, ...], str]] = []

    def add_row(self, *cells: Text | str, style: str = "") -> None:
        texts = (cell if isinstance(cell, Text) else Text(cell) for cell in cells)
        self._rows.append((tuple(texts), style))

    def on_one_line(self) -> ListTable:
        """The same table with every row on one line, for a screen of few rows."""
        self._details |= self._wrapped
        self._wrapped = frozenset()
        return self

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self._fitted(options.max_width)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement.get(console, options, self._fitted(options.max_width))

    def _fitted(self, width: int) -> Table:
        shown = [n for n in range(len(self._columns)) if any(cells[n] for cells, _ in self._rows)]
        widths = self._widths(shown, width)
        table = Table(
            box=box.SIMPLE_HEAD,
            header_style="bold",
            pad_edge=False,
            show_edge=False,
            padding=(0, 1, 0, 0),
        )
        for n in shown:
            name = self._columns[n]
            table.add_column(
                name,
                justify="right" if name in self._right else "left",
                no_wrap=name not in self._wrapped,
                overflow="fold" if name in self._wrapped else "ellipsis",
                width=widths[n],
            )
        for cells, style in self._rows:
            table.add_row(*(self._shortened(n, cells[n], widths[n]) for n in shown), style=style)
        return table

    def _widths(self, shown: list[int], width: int) -> dict[int, int]:
        """The natural widths; the widest flexible columns give way first."""
        widths = {n: self._natural_width(n) for n in shown}
        spare = width - sum(widths.values()) - _GAP * (len(shown) - 1)
        wide_columns = [n for n in shown if self._columns[n] in self._details | self._wrapped]
        flexible = {n: self._least_width(n) for n in shown if self._is_flexible(n)}
        if len(wide_columns) > 1:
            flexible |= dict.fromkeys(wide_columns, _LEAST_SHARED_WIDTH)
        while spare < 0:
            wide = [n for n, least in flexible.items() if widths[n] > least]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
            spare += 1
        return widths

    def _natural_width(self, n: int) -> int:
        lines = (line for cells, _ in self._rows for line in cells[n].plain.split("\n"))
        return max(cell_len(self._columns[n]), *map(cell_len, lines))

    def _is_flexible(self, n: int) -> bool:
        return self._columns[n] in self._names | self._details | self._wrapped

    def _least_width(self, n: int) -> int:
        if self._columns[n] in self._wrapped:
            return _LEAST_WRAPPED_WIDTH
        return _LEAST_DETAIL_WIDTH if self._columns[n] in self._details else _LEAST_NAME_WIDTH

    def _shortened(self, n: int, cell: Text, width: int) -> Text:
        if self._columns[n] in self._names:
            return Text(shorten_middle(cell.plain, width), style=cell.style)
        if self._columns[n] in self._details:
            return Text(shorten_end(cell.plain, width), style=cell.style)
        return cell
