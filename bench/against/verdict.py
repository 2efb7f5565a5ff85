"""The ratios of a comparison, and whether this tree is as fast as the other commit."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from bench import tables

RATES = {
    "drain, 1 process, jobs/s": ("drain.rate",),
    "enqueue one by one, awaited, jobs/s": ("awaited.rate",),
    "enqueue one by one, blocking, jobs/s": ("blocking.rate",),
    "enqueue in bulk, jobs/s": ("bulk.rate",),
}
COSTS = {
    "drain, WAL bytes per job": ("drain.wal_bytes",),
    "drain, buffers per job": ("drain.buffers",),
    "enqueue awaited, WAL bytes per job": ("awaited.wal_bytes",),
    "enqueue awaited, buffers per job": ("awaited.buffers",),
    "enqueue blocking, WAL bytes per job": ("blocking.wal_bytes",),
    "enqueue blocking, buffers per job": ("blocking.buffers",),
    "enqueue in bulk, WAL bytes per job": ("bulk.wal_bytes",),
    "enqueue in bulk, buffers per job": ("bulk.buffers",),
    "enqueue in bulk, statements per job": ("bulk.statements",),
    "enqueue awaited and drain, statements per job": ("awaited.statements", "drain.statements"),
    "enqueue blocking and drain, statements per job": ("blocking.statements", "drain.statements"),
}
#: Claims and endings come in groups whose size depends on timing. So the statements of a drain, one
#: for about 180 jobs, differ by a tenth between equal programs; they are judged with the enqueue's.
NOT_JUDGED = {
    "drain, statements per job": ("drain.statements",),
    "drain, worker CPU µs per job": ("drain.cpu_us",),
}
MOST_COST = 1.01
RATE_MARGIN = 0.03
#: Equal programs whose rates differ by more were disturbed by other load.
NOISE = 0.05


def judge(document: Mapping[str, Any]) -> dict[str, Any]:
    """Medians, ratios and the verdict, as parts of the document."""
    if not document["pairs"]:
        missed = ["no pair was measured"]
        return {"ratios": {}, "verdict": {"passed": False, "missed": missed, "noisy": []}}
    every = {**RATES, **COSTS, **NOT_JUDGED}
    ratios = {label: _compared(document, paths) for label, paths in every.items()}
    missed = [
        f"{label}: {ratio['ratio']:.3f}, at least {least:.3f}"
        for label in RATES
        if (ratio := ratios[label])["ratio"]
        < (least := round(ratio["control"]["ratio"] - RATE_MARGIN, 4))
    ]
    missed += [
        f"{label}: {ratios[label]['ratio']:.3f}, at most {MOST_COST:.2f}"
        for label in COSTS
        if ratios[label]["ratio"] > MOST_COST
    ]
    noisy = [label for label in RATES if abs(ratios[label]["control"]["ratio"] - 1) > NOISE]
    return {
        "ratios": ratios,
        "verdict": {"passed": not missed, "missed": missed, "noisy": noisy},
    }


def _compared(document: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    pairs = document["pairs"]
    medians = {
        name: statistics.median(_figure(pair[name], paths) for pair in pairs)
        for name in ("other", "this")
    }
    control = _ratio(document["control"], "copy", paths)
    return {**medians, **_ratio(pairs, "other", paths), "control": control}


def _ratio(pairs: Sequence[Mapping[str, Any]], base: str, paths: Sequence[str]) -> dict[str, float]:
    """This tree divided by ``base``, pair by pair: the median and the range."""
    ratios = [_figure(pair["this"], paths) / _figure(pair[base], paths) for pair in pairs]
    return {
        "ratio": round(statistics.median(ratios), 4),
        "low": round(min(ratios), 4),
        "high": round(max(ratios), 4),
    }


def _figure(repeats: Sequence[Mapping[str, Any]], paths: Sequence[str]) -> float:
    """The sum over ``paths``, as the mean of the repeats."""
    split = [path.split(".") for path in paths]
    return statistics.mean(
        sum(float(figures[phase][name]) for phase, name in split) for figures in repeats
    )


def table(document: Mapping[str, Any]) -> str:
    """The ratios beside those of the control, and the verdict."""
    count = len(document["pairs"])
    parts = [tables.conditions(document, f"{count} alternating pair{'s' * (count != 1)}")]
    if document["ratios"]:
        titles = [_title(document, name) for name in ("other", "this")]
        head = ["", *titles, "this / other", "range", "this / copy", "range"]
        rows = [_row(label, ratio) for label, ratio in document["ratios"].items()]
        parts.append(tables.table(head, rows))
    parts += [f"- pair {each['pair'] + 1} failed: {each['error']}" for each in document["failures"]]
    return "\n\n".join([*parts, _sentence(document["verdict"])])


def _title(document: Mapping[str, Any], name: str) -> str:
    program = document["programs"][name]
    commit, changed, _ = (program["commit"] or "").partition("+")
    return f"{name}: {program['package']} {commit[:8]}{changed}".strip()


def _row(label: str, ratio: Mapping[str, Any]) -> list[str]:
    control = ratio["control"]
    digits = 0 if ratio["this"] >= 1000 else 1 if ratio["this"] >= 10 else 4
    return [
        label,
        tables.number(ratio["other"], digits),
        tables.number(ratio["this"], digits),
        f"{ratio['ratio']:.3f}",
        f"{ratio['low']:.2f} to {ratio['high']:.2f}",
        f"{control['ratio']:.3f}",
        f"{control['low']:.2f} to {control['high']:.2f}",
    ]


def _sentence(verdict: Mapping[str, Any]) -> str:
    rule = (
        f"WAL, buffers and statements per job at most {MOST_COST:.2f}; "
        f"median rates at least the control's minus {RATE_MARGIN:.2f} "
        f"(not judged alone: {'; '.join(NOT_JUDGED)})"
    )
    lines = [f"Verdict: {'passed' if verdict['passed'] else 'not passed'}. {rule}."]
    lines += [f"- {each}" for each in verdict["missed"]]
    if verdict["noisy"]:
        lines.append(
            f"The machine was not quiet: the control differs from 1 by more than {NOISE:g} in "
            f"{'; '.join(verdict['noisy'])}. Measure again."
        )
    return "\n".join(lines)
