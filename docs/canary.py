"""The canary's table and the picture of its curves, from what ``patchwheel accept --json`` measured."""

from __future__ import annotations

from html import escape
from typing import Any

__all__ = ["chart", "page"]

# Okabe and Ito's palette: told apart with any colour vision. Right and left end of each line carry its name as well.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#666666", "#8C6D31", "#222222")
WIDTH, HEIGHT = 860, 440
LEFT, RIGHT, TOP, BOTTOM = 62, 300, 56, 58
GAP = 17  # between two names

INTRODUCTION = """\
# The canary

A tiny target and a tiny drafter, trained by this project and shipped with it, served by vLLM 0.20.2 on the CPU from a
wheel that patchwheel built. Each row is one server. *Mean length* is the mean acceptance length, the tokens that a step
yields; *inside the window* the same for prompts so short that no window matters, only causality; *rate* the share of
proposed tokens that was accepted; *reference* says whether drafts and accepted tokens at each position are those of the
plain-torch [reference](../explanation/dflash.md); *text* in how many completions the text is that without speculation.

The drafter was trained to tell faults apart: for some of them (the first four below *right*) it has learnt to answer a
few positions and then give up, so that each has a curve of its own. A drafter trained for use would lose less, and less
clearly. [`train.py`](../../tests/canary/train.py) says how.

"""
REPEATED = """
Above, the rows that repeat were asked one by one, and the others eight at once. All that the former gave (*cached*: the
share of prompt tokens that came from the prefix cache):

| row | phase | cached | mean length | drafts |
|---|---|---|---|---|
"""


def speculating(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows with a drafter that were run."""
    return [row for row in document["rows"] if row["drafter"] and row["measured"]]


def first(row: dict[str, Any], prompts: str = "long") -> dict[str, Any] | None:
    """What was measured when a set of prompts was asked for the first time."""
    return next((part for part in row["measured"] if part["prompts"] == prompts), None)


def page(document: dict[str, Any], note: str) -> str:
    """The page in Markdown."""
    right = first(next(row for row in document["rows"] if row["row"] == "right"))
    if right is None:
        raise ValueError("the row right was not run: nothing to compare with")
    short = any(first(row, "short") for row in document["rows"])
    heads = ["row", "mean length", "of right", "rate", "drafts", "accepted at position 1, 2, …", "reference", "text"]
    if short:
        heads.insert(3, "inside the window")
    lines = [
        note,
        INTRODUCTION,
        "![Share of drafts accepted at each position, for each row](canary.svg)\n\n",
        "| " + " | ".join(heads) + " |\n|" + "---|" * len(heads) + "\n",
    ]
    for row in document["rows"]:
        part = first(row)
        if part is None:
            cells = [row["row"], *("-",) * (len(heads) - 1)]
        elif not row["drafter"]:
            cells = [row["row"], *("",) * (len(heads) - 2), "{}/{}".format(*row["same_text"])]
        else:
            reference = row["reference"]["long"]
            same = (part["drafts"], part["accepted"]) == (reference["drafts"], reference["accepted"])
            cells = [
                row["row"],
                f"{part['mean_length']:.2f}",
                f"{part['mean_length'] / right['mean_length']:.0%}",
                f"{part['rate']:.1%}",
                str(part["drafts"]),
                " ".join(map(str, part["accepted"])),
                "the same" if same else f"{reference['drafts']}: " + " ".join(map(str, reference["accepted"])),
                "{}/{}".format(*row["same_text"]),
            ]
            if short:
                inside = first(row, "short")
                cells.insert(3, f"{inside['mean_length']:.2f}" if inside else "")
        lines.append("| " + " | ".join(cells) + " |\n")
    lines.append("\nWhat the rows are:\n\n")
    lines += [f"- **{row['row']}**: {row['says']}.\n" for row in document["rows"]]
    lines.append(repeats(document))
    lines.append("\nThe wheels that were served:\n\n| | wheel | sha256 |\n|---|---|---|\n")
    lines += [
        f"| {name} | `{wheel['file']}` | `{wheel['sha256'][:16]}…` |\n" for name, wheel in document["wheels"].items()
    ]
    return "".join(lines)


def repeats(document: dict[str, Any]) -> str:
    """The rows that were asked again, and several requests at once."""
    lines = [REPEATED]
    for row in speculating(document):
        parts = [part for part in row["measured"] if part["prompts"] == "long"]
        if len(parts) > 1:
            lines += [
                f"| {row['row']} | {part['phase']} | {part['cached']:.1%} | {part['mean_length']:.2f} | "
                f"{part['drafts']} |\n"
                for part in parts
            ]
    return "".join(lines)


def chart(document: dict[str, Any]) -> str:
    """The picture as SVG: share of drafts accepted at each position, one line a row, its name at the right end."""
    rows = sorted(speculating(document), key=lambda row: -(first(row) or {})["mean_length"])
    shares = [[count / part["drafts"] for count in part["accepted"]] for row in rows if (part := first(row))]
    positions = max(map(len, shares))

    def across(position: float) -> float:
        return LEFT + position * (WIDTH - LEFT - RIGHT) / (positions - 1)

    def up(share: float) -> float:
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            'font-family="system-ui, sans-serif" font-size="13">\n'
        ),
        "<title>Share of drafts accepted at each position</title>\n",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>\n',
        (
            f'<text x="{LEFT}" y="24" font-size="15" font-weight="600" fill="#222222">Share of drafts accepted at each '
            "position</text>\n"
        ),
        f'<text x="{LEFT}" y="42" fill="#666666">long prompts; behind each name the mean acceptance length</text>\n',
    ]
    for step in range(6):
        share = step / 5
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(share):.1f}" y2="{up(share):.1f}" stroke="#e3e3e3"/>\n'
            f'<text x="{LEFT - 8}" y="{up(share) + 4:.1f}" text-anchor="end" fill="#666666">{share:.0%}</text>\n'
        )
    parts += [
        f'<text x="{across(position):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle" fill="#666666">'
        f"{position + 1}</text>\n"
        for position in range(positions)
    ]
    parts.append(
        f'<text x="{across((positions - 1) / 2):.1f}" y="{HEIGHT - 14}" text-anchor="middle" fill="#444444">'
        "position in the block</text>\n"
    )
    places = spread([up(line[-1]) for line in shares], TOP, HEIGHT - BOTTOM)
    lines = list(enumerate(zip(rows, shares, places, strict=True)))
    for number, (row, line, place) in reversed(lines):  # the best last, on top of those that equal it
        colour = COLOURS[number % len(COLOURS)]
        points = " ".join(f"{across(position):.1f},{up(share):.1f}" for position, share in enumerate(line))
        dashes = "" if number < len(COLOURS) else ' stroke-dasharray="5 3"'
        width = "3.5" if row["row"] == "right" else "2"
        length = (first(row) or {})["mean_length"]
        end = across(positions - 1)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>\n'
            f'<path d="M{end + 4:.1f} {up(line[-1]):.1f} L{end + 22:.1f} {place:.1f}" stroke="{colour}" fill="none" '
            'stroke-width="1"/>\n'
            f'<text x="{end + 27:.1f}" y="{place + 4:.1f}" fill="{colour}">{escape(row["row"])}, {length:.2f}</text>\n'
        )
    parts.append("</svg>\n")
    return "".join(parts)


def spread(places: list[float], top: float, bottom: float) -> list[float]:
    """Heights for names near the given ones, none closer than `GAP` to the next, all within the picture."""
    order = sorted(range(len(places)), key=lambda number: (places[number], number))
    result = list(places)
    floor = top
    for number in order:
        result[number] = max(places[number], floor)
        floor = result[number] + GAP
    ceiling = bottom
    for number in reversed(order):
        result[number] = min(result[number], ceiling)
        ceiling = result[number] - GAP
    return result
