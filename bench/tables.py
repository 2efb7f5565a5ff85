"""The results as Markdown, the same for a terminal and for the documentation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

OURS = "freehold"
MISSING = "–"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def number(value: float | None, digits: int = 0) -> str:
    return MISSING if value is None else f"{value:,.{digits}f}"


def at(figures: Mapping[str, Any], *path: str) -> float | None:
    value: Any = figures
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return float(value)


def ratio(value: float | None, to: float | None) -> str:
    return MISSING if value is None or not to else f"{value / to:.2f}"


def conditions(document: Mapping[str, Any], repeats: str) -> str:
    """The machine, the date and the settings, in one sentence."""
    machine, server = document["machine"], document["server"]
    low, high = min(document["load_average"]), max(document["load_average"])
    settings = [
        f"{name}={value}"
        for name, value in server["settings"].items()
        if name in ("fsync", "synchronous_commit", "shared_buffers")
    ]
    return (
        f"Measured {document['date'][:10]} on {machine['cores']} cores ({machine['processor']}, "
        f"{machine['memory_gib']:g} GiB), PostgreSQL {server['version'].split()[0]} "
        f"({', '.join(settings)}), Python {document['versions']['python']}; "
        f"{repeats}, medians; load average {low:g} to {high:g}."
    )


def rounds(document: Mapping[str, Any]) -> str:
    count = document["round_count"]
    return f"{count} interleaved round{'s' * (count > 1)}"


def core(document: Mapping[str, Any]) -> str:
    medians = document["medians"]
    limit = medians.get("raw-sql", {})
    rows = [
        [
            f"**{name}**" if name.startswith(OURS) else name,
            number(at(found, "drain1", "rate")),
            ratio(at(found, "drain1", "rate"), at(limit, "drain1", "rate")),
            number(at(found, "drain2", "rate")),
            number(at(found, "one", "rate")),
            number(at(found, "blocking", "rate")),
            number(at(found, "bulk", "rate")),
            number(at(found, "latency", "p50"), 1),
            number(at(found, "latency", "p99"), 1),
            number(at(found, "drain1", "wal_bytes")),
            number(at(found, "drain1", "cpu_us"), 0),
        ]
        for name, found in medians.items()
    ]
    head = [
        "",
        "drain, 1 process",
        "of raw",
        "drain, 2",
        "enqueue one by one",
        "blocking",
        "bulk enqueue",
        "start p50 ms",
        "p99 ms",
        "WAL B per job",
        "worker CPU µs",
    ]
    notes = [
        f"- `{name}` {contender['version']}: {contender['terms']}"
        for name, contender in document["contenders"].items()
    ]
    notes += [f"- `{name}`: absent, {why}" for name, why in document["absent"].items()]
    notes += [
        f"- `{each['contender']}`, round {each['round'] + 1}: {each['error'].splitlines()[0]}"
        for each in document["failures"]
    ]
    shown = table(*_without_empty(head, rows))
    return "\n\n".join(
        [conditions(document, rounds(document)), shown, aims(document), "\n".join(notes)]
    )


def _without_empty(
    head: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Drop the columns of measures that this run does not have."""
    kept = [n for n in range(len(head)) if any(row[n] != MISSING for row in rows)]
    return [head[n] for n in kept], [[row[n] for n in kept] for row in rows]


#: The aims: label, measure, the peers compared (None: the best of all), and the least ratio.
AIMS = (
    ("drain, 1 process, to PgQueuer", ("drain1", "rate"), ("pgqueuer",), 1.5),
    ("drain, 1 process, to Graphile Worker tuned", ("drain1", "rate"), ("graphile-tuned",), 1.0),
    ("drain, 2 processes, to Graphile Worker tuned", ("drain2", "rate"), ("graphile-tuned",), 1.3),
    ("enqueue one by one, awaited, to the best peer", ("one", "rate"), None, 1.2),
    ("enqueue one by one, blocking, to the best peer", ("blocking", "rate"), None, 1.2),
    ("bulk enqueue, to the best peer", ("bulk", "rate"), None, 1.5),
)
#: A user takes the faster of the two calls.
_FASTER = ("enqueue one by one, the faster call of each, to the best peer", "1.2")
_NO_PEERS = ("raw-sql", OURS, f"{OURS}-sqlite")


def aims(document: Mapping[str, Any]) -> str:
    medians = document["medians"]
    ours = medians.get(OURS, {})
    rows = []
    for label, path, names, least in AIMS:
        peers = [
            at(medians[name], *path)
            for name in names or medians
            if name in medians and name not in _NO_PEERS
        ]
        best = max((value for value in peers if value is not None), default=None)
        if (reached := ratio(at(ours, *path), best)) != MISSING:
            rows.append([label, f"{least:g}", reached])
    if (reached := _faster(medians)) != MISSING:
        rows.append([*_FASTER, reached])
    return table(["aim", "at least", "reached"], rows)


def _faster(medians: Mapping[str, Any]) -> str:
    best = {
        name: max(at(found, call, "rate") or 0.0 for call in ("one", "blocking"))
        for name, found in medians.items()
    }
    peers = max((rate for name, rate in best.items() if name not in _NO_PEERS), default=None)
    return ratio(best.get(OURS), peers)


def growth(document: Mapping[str, Any]) -> str:
    medians = document["medians"]
    sizes = document["sizes"]
    rows = []
    for name, found in medians.items():
        if "rate" not in found:
            continue
        rate, base = at(found, "rate"), medians.get(_BASES.get(name, "clean"), {})
        label = growth_label(name, sizes) + (f" (of the {_BASES[name]})" if name in _BASES else "")
        row = [label, number(rate), ratio(rate, at(base, "rate"))]
        for figure, digits in (("buffers", 1), ("wal_bytes", 0)):
            value = per_job(found, figure)
            row += [number(value, digits), ratio(value, per_job(base, figure))]
        row += [
            number(at(found, "cpu_us")),
            number(at(found, "claim", "buffers")),
            number(at(found, "claim", "ms"), 2),
        ]
        rows.append(row)
    head = [
        "",
        "jobs/s",
        "of clean",
        "buffers per job",
        "of clean",
        "WAL B per job",
        "of clean",
        "worker CPU µs",
        "buffers per claim",
        "ms per claim",
    ]
    parts = [conditions(document, rounds(document)), table(head, rows)]
    if (idle := medians.get("idle workers")) is not None:
        parts.append(
            f"{idle['workers']:g} idle workers ({idle['processes']:g} processes, each with those "
            f"of {idle['workers'] / idle['processes']:g} tenants): "
            f"{idle['statements_per_second']:.1f} transactions per second, all together."
        )
    return "\n\n".join(parts)


#: Cases that are compared with another case than the clean one.
_BASES = {"lanes beside a failed head": "lanes"}


def per_job(found: Mapping[str, Any], figure: str) -> float | None:
    """From the statistics of statements where the server keeps them, else of the database."""
    value = at(found, "statements", figure)
    return at(found, figure) if value is None else value


def growth_label(name: str, sizes: Mapping[str, Any]) -> str:
    labels = {
        "finished": f"{sizes['finished']:,} finished jobs",
        "scheduled": f"{sizes['scheduled']:,} scheduled jobs",
        "held snapshot": "a snapshot held open",
        "lanes": f"{sizes['lanes']:,} lanes",
        "behind a failed head": f"{sizes['behind']:,} jobs behind a failed one",
        "lanes beside a failed head": f"the same lanes, beside {sizes['behind']:,} such jobs",
        "beside a limit": "a queue with a limit of 7, served by the same worker",
        "beside claimers of a limit": "64 slots of 4 other processes want jobs under a limit of 7",
    }
    return labels.get(name, name)


#: The aims of `mixed`.
_MIXED_AIM, _RETRIED_AIM = 1.3, 0.75


def mixed(document: Mapping[str, Any]) -> str:
    medians = document["medians"]
    peer = at(medians.get("pgqueuer", {}), "bulk", "rate")
    rows = [
        [
            f"**{name}**" if name.startswith(OURS) else name,
            number(at(found, "bulk", "rate")),
            ratio(at(found, "bulk", "rate"), peer),
            number(at(found, "bulk", "cpu_us"), 1),
            number(at(found, "steady", "rate")),
            number(at(found, "retried", "rate")),
            ratio(at(found, "retried", "rate"), at(found, "steady", "rate")),
            number(_of_a_failure(found, document["retried_every"])),
        ]
        for name, found in medians.items()
    ]
    head = [
        "",
        "bulk enqueue",
        "of PgQueuer",
        "client CPU µs",
        "drain, none fails",
        "every tenth fails once",
        "of none",
        "worker CPU µs of a failure",
    ]
    ours = medians.get(OURS, {})
    reached = [
        [
            "bulk enqueue of jobs that differ, to PgQueuer",
            f"{_MIXED_AIM:g}",
            ratio(at(ours, "bulk", "rate"), peer),
        ],
        [
            "drain while every tenth job fails once, to none",
            f"{_RETRIED_AIM:g}",
            ratio(at(ours, "retried", "rate"), at(ours, "steady", "rate")),
        ],
    ]
    notes = "\n".join(f"- `{name}`: absent, {why}" for name, why in document["absent"].items())
    parts = [conditions(document, rounds(document)), table(head, rows)]
    parts += [table(["aim", "at least", "reached"], reached)]
    return "\n\n".join([*parts, notes] if notes else parts)


def _of_a_failure(found: Mapping[str, Any], every: int) -> float | None:
    """What a failed attempt takes of the worker, with the second attempt."""
    retried, steady = at(found, "retried", "cpu_us"), at(found, "steady", "cpu_us")
    return None if retried is None or steady is None else (retried - steady) * every


def wake(document: Mapping[str, Any]) -> str:
    with_wakes = at(document["medians"], "with wake-ups", "rate")
    without = at(document["medians"], "without", "rate")
    head = [f"{document['clients']} enqueuing clients", "jobs/s", "of the rate without"]
    rows = [
        ["with wake-ups", number(with_wakes), ratio(with_wakes, without)],
        ["without", number(without), "1"],
    ]
    return "\n\n".join([conditions(document, rounds(document)), table(head, rows)])
