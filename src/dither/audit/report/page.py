"""Renders the report as one self-contained page: what was claimed, what was found, how, and how to repeat it.

Dark on white, readable on paper. No script, font or picture comes from elsewhere. Every foreign text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from dither.audit.report.report import Report, versions
from dither.audit.report.svg import Shape, drawing, histogram
from dither.audit.verdict import NOT_FOUND, PROVED, SHARE, VIOLATES, WALKED, Verdict, rounded_down, rounded_up

STYLE = """
:root{color-scheme:light}
*{box-sizing:border-box}
body{margin:0 auto;max-width:62rem;padding:2rem 1.5rem 4rem;font:16px/1.55 system-ui,-apple-system,"Segoe UI",sans-serif;
color:#1c1c1c;background:#fff}
header{border-bottom:2px solid #1c1c1c;margin-bottom:1rem}
h1{font-size:1.9rem;line-height:1.2;margin:.1rem 0 .8rem;overflow-wrap:anywhere}
h2{font-size:1.25rem;margin:2.4rem 0 .6rem;border-bottom:1px solid #ddd;padding-bottom:.2rem}
h3{font-size:1.02rem;margin:1.4rem 0 .5rem;overflow-wrap:anywhere}
small,.meta,figcaption{color:#595959;font-size:.86rem;font-weight:400}
.kicker{margin:0;text-transform:uppercase;letter-spacing:.08em;font-size:.8rem;color:#595959}
.banner{font-size:1.1rem;font-weight:600;padding:.7rem 1rem;border-left:6px solid;margin:.4rem 0 .6rem}
.good{border-color:#1b7a3d}.bad{border-color:#b3261e}.plain{border-color:#6b7280}
.banner.good{background:#eaf6ee}.banner.bad{background:#fdecea}.banner.plain{background:#f3f4f6}
.badge{display:inline-block;padding:0 .5rem;border-radius:.7rem;font-size:.8rem;font-weight:600;white-space:nowrap}
.badge.good{background:#d8f0df;color:#125a2c}.badge.bad{background:#fbd9d6;color:#8c1d18}
.badge.plain{background:#e5e7eb;color:#374151}
.wide{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .7rem .3rem 0;border-bottom:1px solid #e8e8e8}
th{font-weight:600;color:#444;white-space:nowrap}
td:not(:first-child){font-variant-numeric:tabular-nums}
code,pre{font:.86em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;overflow-wrap:anywhere}
pre{background:#f6f6f6;padding:.7rem .9rem;overflow-x:auto;white-space:pre-wrap}
article{border-left:4px solid;padding:.1rem 0 .1rem 1rem;margin:1.2rem 0;break-inside:avoid}
dl{display:grid;grid-template-columns:minmax(9rem,max-content) 1fr;gap:.15rem 1rem;margin:.4rem 0;font-size:.92rem}
dt{color:#595959;max-width:18rem}dd{margin:0;overflow-wrap:anywhere}
figure{margin:.8rem 0;break-inside:avoid}figure svg{width:100%;max-width:38rem;height:auto;border:1px solid #e8e8e8}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(24rem,1fr));gap:1rem}
.grid figure{margin:0}
@media print{body{font-size:11pt;padding:0}.wide{overflow:visible}}
"""


_LONGEST = 600
_MARK = {PROVED: "proved", WALKED: "walked", VIOLATES: "violated", NOT_FOUND: "nothing found"}
_OPEN, _DOUBT = "nothing concluded", "doubtful"
_HIDDEN = ("samples", "law", "column", "says", "relies on", "counterexample", "cannot see")
_METHODS = {
    "exact": "Exact. The law of the output is known. The largest log ratio of its probabilities between the two inputs is "
    "computed over all outputs in rational and interval arithmetic, so “proved” is a proof for the mechanism's examples. "
    "“Walked”: a sampler was run on chosen random bits, and the probability of each output is counted against the law. What "
    "was tried in every value and what is assumed of the values between is stated with it; it is no proof by itself.",
    "replay": "Replay. The whole program runs on neighbouring inputs D and D′ with the same recorded randomness. What it hands "
    "to its noise may differ by no more than it declared and paid for, and everything else that can be observed (errors, "
    "messages, shape, keys, missing values, types, charges) must be equal. One counterexample is a refutation.",
    "black box": "Black box. The program runs many times on D and on D′. Events that tell the two apart are looked for in one "
    "sample and counted in a fresh one; Clopper–Pearson bounds give a lower bound of ε. One error is stated for all looks and "
    "all events together: “violated” is wrong with probability at most 0.001, a lower bound with at most 0.05. "
    "That nothing was found is not a proof.",
}


def save(report: Report, page: Path, write: Callable[[Path, bytes], object] = Path.write_bytes) -> Path:
    """Writes the page, and the JSON beside it under the same name. Returns the path of the JSON."""
    beside = page.with_suffix(".json")
    write(page, render(report).encode("utf-8"))
    write(beside, (report.to_json() + "\n").encode("utf-8"))
    return beside


def render(report: Report) -> str:
    """Returns the whole page."""
    body = "".join([_top(report), _claims(report), _method(report), _evidence(report), _open_ends(report), _reproduce(report)])
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>Privacy audit of {escape(report.target)}</title><style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def _top(report: Report) -> str:
    kind = "bad" if report.violations else "good" if report.verdicts else "plain"
    return (
        f"<header><p class=kicker>Privacy audit</p><h1>{escape(report.target)}</h1>"
        f'<p class="banner {kind}">{escape(report.summary())}</p>'
        f"<p class=meta>{escape(report.started)} · {report.seconds:.0f} s · seed {report.seed} · dither "
        f"{escape(versions()['dither'])}</p></header>"
    )


def _claims(report: Report) -> str:
    """Returns a table with a row per verdict, or per method and outcome if there are many."""
    if len(report.verdicts) <= 12:
        rows = [_row(verdict) for verdict in report.verdicts]
        return _section("What was claimed, and what was found", _table(("of", "claim", "found", "by", "verdict"), rows))
    groups: dict[tuple[str, str, str], list[Verdict]] = {}
    for verdict in report.verdicts:
        groups.setdefault((_group(verdict), verdict.method, _outcome(verdict)), []).append(verdict)
    rows = []
    for (group, method, outcome), verdicts in groups.items():
        rows.append((escape(group), str(len(verdicts)), escape(method), _badge(outcome)))
    return _section("What was claimed, and what was found", _table(("claims about", "checks", "by", "verdict"), rows))


def _group(verdict: Verdict) -> str:
    if _is_walk(verdict):
        return "samplers: every draw follows its stated law"
    return {
        "exact": "mechanisms: no output reveals more than the price says",
        "replay": "the path from a question to its answer",
    }.get(verdict.method, "mechanisms as they run")


def _is_walk(verdict: Verdict) -> bool:
    return verdict.method == "exact" and "runs" in verdict.evidence


def _row(verdict: Verdict) -> tuple[str, ...]:
    return (escape(verdict.target), _claim(verdict), _result(verdict), escape(verdict.method), _badge(_outcome(verdict)))


def _claim(verdict: Verdict) -> str:
    epsilon, delta = (float(part) for part in verdict.claimed)
    if _is_walk(verdict):
        return "the stated law"
    if SHARE in verdict.evidence:
        return "its price"
    return f"ε = {_number(epsilon)}" + (f", δ = {_number(delta)}" if delta else "")


def _result(verdict: Verdict) -> str:
    if _is_walk(verdict) and verdict.outcome != VIOLATES:
        return f"within {_number(float(verdict.claimed[1]))} of it"
    if verdict.open:
        return escape(verdict.open)
    if verdict.outcome == PROVED:
        return f"ε ≤ {rounded_up(verdict.epsilon)}" + (
            f", δ ≤ {_number(float(verdict.claimed[1]))}" if verdict.claimed[1] else ""
        )
    if verdict.outcome == NOT_FOUND:
        return escape(verdict.bound())
    if SHARE in verdict.evidence:
        return f"one unit moves it by {rounded_down(verdict.epsilon, 1.0)} times what was priced"
    sure = "" if verdict.confidence >= 1 else f" at {100 * verdict.confidence:.6g} %"
    return f"ε ≥ {rounded_down(verdict.epsilon, float(verdict.claimed[0]))}{sure}"


def _outcome(verdict: Verdict) -> str:
    return _OPEN if verdict.open else _DOUBT if verdict.doubtful else verdict.outcome


def _badge(outcome: str) -> str:
    kind = {PROVED: "good", VIOLATES: "bad"}.get(outcome, "plain")
    return f'<span class="badge {kind}">{escape(_MARK.get(outcome, outcome))}</span>'


def _method(report: Report) -> str:
    used = [method for method in _METHODS if any(verdict.method == method for verdict in report.verdicts)]
    intro = (
        "<p>A program keeps (ε, δ)-differential privacy if for every two inputs D and D′ that differ in one person, and every "
        "set S of outputs, Pr[output on D in S] ≤ e<sup>ε</sup> · Pr[output on D′ in S] + δ.</p>"
    )
    return _section("Method", intro + "".join(f"<p>{escape(_METHODS[method])}</p>" for method in used))


def _evidence(report: Report) -> str:
    """Returns violations first and in full, then attacks and replays, then proofs in tables with one drawing per kind."""
    cards = [_card(verdict) for verdict in report.violations]
    rest = [verdict for verdict in report.verdicts if verdict.outcome != VIOLATES]
    cards += [_card(verdict) for verdict in rest if verdict.method != "exact"]
    exact = [verdict for verdict in rest if verdict.method == "exact"]
    parts = [
        "".join(cards),
        _proofs([one for one in exact if not _is_walk(one)]),
        _walks([one for one in exact if _is_walk(one)]),
    ]
    if report.extra:
        parts.append("<h3>Measured</h3>" + _definitions(report.extra))
    return _section("Evidence", "".join(parts))


def _card(verdict: Verdict) -> str:
    kind = {VIOLATES: "bad", PROVED: "good"}.get(verdict.outcome, "plain")
    facts: list[tuple[str, str]] = [("claim", _claim(verdict)), ("found", _result(verdict))]
    if verdict.event:
        facts.append(("event", escape(_cut(verdict.event))))
    if verdict.pair is not None:
        facts += [("D", _code(repr(verdict.pair[0]))), ("D′", _code(repr(verdict.pair[1])))]
    if verdict.advantage is not None:
        facts.append(("membership-inference advantage", f"at least {verdict.advantage:.4f}"))
    facts += [(escape(str(name)), _value(value)) for name, value in verdict.evidence.items() if _is_shown(name, value)]
    facts.append(("time", f"{verdict.seconds:.2g} s"))
    words = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts)
    example = verdict.evidence.get("counterexample")
    shown = f"<pre>{escape(_cut(str(example), 4000))}</pre>" if example else ""
    head = f"<h3>{escape(verdict.target)} {_badge(_outcome(verdict))} <small>{escape(verdict.method)}</small></h3>"
    return f'<article class="{kind}">{head}<dl>{words}</dl>{shown}{_picture(verdict)}</article>'


def _is_shown(name: str, value: Any) -> bool:
    return name not in _HIDDEN and (value or isinstance(value, (int, float)))


def _picture(verdict: Verdict) -> str:
    """Draws both distributions and the band, if the evidence has them."""
    epsilon, delta = (float(part) for part in verdict.claimed)
    samples, law = verdict.evidence.get("samples"), verdict.evidence.get("law")
    shape: Shape | None = None
    if isinstance(samples, Mapping) and len(samples) == 2:
        shape = histogram(samples["D"], samples["D'"])
    elif isinstance(law, Mapping) and law:
        shape = Shape(tuple(law["output"]), tuple(law["D"]), tuple(law["D'"]))
    if shape is None:
        return ""
    axis = str(verdict.evidence.get("column") or "output")
    basis = f"{shape.sampled:,} outputs of each; pale: what chance may add" if shape.sampled else "exact"
    title = _cut(verdict.target, 70)
    picture = drawing(shape, epsilon, delta, title=title, axis=axis)
    return f"<figure>{picture}<figcaption>How likely each output is on D and on D′ ({basis}).</figcaption></figure>"


def _proofs(verdicts: list[Verdict]) -> str:
    if not verdicts:
        return ""
    rows = [(_code(one.target), _claim(one), _result(one), _pair(one), _reached(one)) for one in verdicts]
    firsts: dict[str, Verdict] = {}
    for one in verdicts:
        if one.evidence.get("law"):
            firsts.setdefault(one.target.split("(")[0], one)
    pictures = "".join(_picture(one) for one in firsts.values())
    table = _table(("mechanism", "claim", "proved", "worst pair of exact answers", "reached"), rows)
    return f"<h3>Prices, proved on the exact laws</h3>{table}<div class=grid>{pictures}</div>"


def _reached(verdict: Verdict) -> str:
    """Returns the output with the worst ratio, or the delta that is reached."""
    delta = verdict.evidence.get("delta is at most")
    return escape(str(verdict.evidence.get("reached at", ""))) if delta is None else f"δ = {_number(delta)}"


def _pair(verdict: Verdict) -> str:
    return "" if verdict.pair is None else f"{_code(repr(verdict.pair[0]))} and {_code(repr(verdict.pair[1]))}"


def _walks(verdicts: list[Verdict]) -> str:
    if not verdicts:
        return ""
    rows = []
    for one in verdicts:
        tried = float(one.evidence["decided by trying every word"])
        known = _number(float(one.evidence["distance without any assumption"]))
        share = f"{math.floor(1e6 * tried) / 1e4:.6g} %"
        rows.append((_code(one.target), _number(float(one.claimed[1])), share, known, f"{one.evidence['runs']:,}"))
    relied = escape(str(verdicts[0].evidence["relies on"]))
    heads = (
        "sampler",
        "distance to its law at most",
        "mass whose words were all tried",
        "distance without the assumption",
        "runs",
    )
    note = f"<p>Distance is total variation: how far the probability of any event can be off. It assumes this: {relied}. "
    note += (
        "The last distance takes only what was tried in every value; 1 means that it says nothing without the assumption.</p>"
    )
    return f"<h3>Samplers, walked along the random bits they read</h3>{note}{_table(heads, rows)}"


def _open_ends(report: Report) -> str:
    items = "".join(f"<li>{escape(line)}</li>" for line in report.not_checked)
    return _section("What was not checked", f"<ul>{items}</ul>") if items else ""


def _reproduce(report: Report) -> str:
    rows = [(escape(name), escape(value)) for name, value in versions().items()]
    how = f"<pre>{escape(report.command)}</pre><p>Seed {report.seed}. Generated data and replays repeat exactly with it; "
    how += "samples of code that draws its own randomness differ within the stated error.</p>"
    return _section("To reproduce", how + _table(("", "version"), rows))


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _table(heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    """Returns a table. Cells are HTML, headings are text."""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<div class=wide><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def _definitions(values: Mapping[str, Any]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(str(name))}</dt><dd>{_value(value)}</dd>" for name, value in values.items()) + "</dl>"


def _value(value: Any) -> str:
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, bool) or value is None:
        return escape(str(value))
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return ", ".join(f"{escape(str(name))} {_value(one)}" for name, one in value.items())
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(one, int) for one in value):
        return f"{value[0]:,} of {value[1]:,}"
    if isinstance(value, tuple) and len(value) == 2 and all(isinstance(one, float) for one in value):
        return f"{rounded_down(value[0])} at {100 * value[1]:.6g} %"
    if isinstance(value, (tuple, list)):
        return ", ".join(_value(one) for one in value)
    return escape(_cut(str(value)))


def _number(value: float) -> str:
    return "∞" if value == math.inf else f"{value:.5g}"


def _code(text: str) -> str:
    return f"<code>{escape(_cut(text))}</code>"


def _cut(text: str, most: int = _LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
