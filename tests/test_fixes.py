"""Fixes are data: no fix in the source spells an argument in its prose, so every reader can be told in his own dialect.

The source is read as a tree. A fix is whatever lands in a parameter or field called `fix`, or in the third place of a
catalog's problem; names and functions of the same file are followed to their texts.
"""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from dither.cli.screen import OutputError
from dither.errors import Argument, Blank, Fix, Name, Part, Python, Shell, Text, python
from dither.options import shell

SOURCE = Path(__file__).parents[1] / "src" / "dither"
PARTS = {"Argument", "Name", "Python", "Shell"}
OPTIONS = "epsilon|delta|margin|confidence|analyst|ledger|key|witness|by|assume_rows|fresh"
SPELLED = re.compile(
    r"""\bdt\.                               # a call in Python
      | \w=(?!=) | ^=["'\w\[({…]             # an argument in Python, also behind a place of an f-string
      | (?<![\w-])--[a-z]                    # an option of a shell
      | \b(write|give|give\ a)\ (%s)\ (a|as|of)\b  # the name of an argument
    """  # noqa: UP031
    % OPTIONS,
    re.VERBOSE,
)


# --- every fix in the source ------------------------------------------------------------------------------------


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCE.rglob("*.py"))}


@cache
def places() -> dict[str, int]:
    """For each function or class that is given a fix by its place: which place it is."""
    found = {}
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                fields = [
                    each.target.id
                    for each in node.body
                    if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
                ]
                made = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
                names = fields if made is None else [each.arg for each in made.args.args][1:]
                name = node.name
            elif isinstance(node, ast.FunctionDef):
                names, name = [each.arg for each in node.args.args if each.arg != "self"], node.name
            else:
                continue
            if "fix" in names and name != "__init__":
                found[name] = names.index("fix")
    return found


def fixes(tree: ast.Module) -> Iterator[ast.expr]:
    """Every expression that becomes a fix."""
    problems = any(getattr(node, "id", "") == "CatalogError" for node in ast.walk(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "fix":
            yield node.value
        elif isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = places().get(called)
            if place is not None and len(node.args) > place:
                yield node.args[place]
        elif isinstance(node, ast.FunctionDef) and "fix" in [each.arg for each in node.args.args + node.args.kwonlyargs]:
            yield from (each for each in [*node.args.defaults, *node.args.kw_defaults] if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Tuple) and len(node.elts) == 3 and problems:
            yield node.elts[2]


def prose(fix: ast.expr, tree: ast.Module, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """The texts of a fix that are not parts of it."""
    if isinstance(fix, ast.Constant):
        if isinstance(fix.value, str):
            yield fix.value
    elif isinstance(fix, ast.Call) and getattr(fix.func, "id", "") in PARTS:
        return
    elif isinstance(fix, ast.Name) and fix.id not in seen:
        yield from _assigned(fix.id, tree, seen | {fix.id})
    elif isinstance(fix, ast.Call) and isinstance(fix.func, ast.Name) and fix.func.id not in seen:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == fix.func.id:
                for each in ast.walk(node):
                    if isinstance(each, ast.Return) and each.value is not None:
                        yield from prose(each.value, tree, seen | {fix.func.id})
        if fix.func.id in ("Fix", "Text"):
            for argument in [*fix.args, *(each.value for each in fix.keywords)]:
                yield from prose(argument, tree, seen)
    elif isinstance(fix, ast.FormattedValue):
        yield from prose(fix.value, tree, seen)
    elif not isinstance(fix, (ast.Call, ast.Compare)):
        for child in ast.iter_child_nodes(fix):
            if isinstance(child, ast.expr):
                yield from prose(child, tree, seen)


def _assigned(name: str, tree: ast.Module, seen: frozenset[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == name for target in node.targets):
            yield from prose(node.value, tree, seen)


def spelled(tree: ast.Module) -> list[str]:
    return [text for fix in fixes(tree) for text in prose(fix, tree) if SPELLED.search(text)]


@pytest.mark.parametrize("path", trees(), ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_fix_spells_an_argument_in_its_prose(path: Path) -> None:
    assert spelled(trees()[path]) == []


def test_the_source_is_full_of_fixes() -> None:
    found = [text for tree in trees().values() for fix in fixes(tree) for text in prose(fix, tree)]
    assert len(found) > 700
    assert {"Fault", "items", "refuse"} <= set(places())


@pytest.mark.parametrize(
    "text",
    [
        "raise ArgumentError('x', fix='write epsilon=\"0.1\".')",
        "raise ArgumentError('x', fix=f'write {name}=True.')",
        "raise LedgerError('x', fix='add --key FILE.')",
        "raise LedgerError('x', fix=f'open it: {how}' if how else 'write ledger=…')",
        "_WHOLE = 'give epsilon a value above 0'\nraise QueryError('x', fix=_WHOLE)",
        "def _meant(): return 'as in dt.open(catalog)'\nraise QueryError('x', fix=_meant())",
        "raise CatalogError([(None, 'x', 'write rows=1.')])",
        "raise QueryError('x', fix=Fix('write {a}, or b=2', a=Python('a=1')))",
        "Fault(path, 'x', 'write max_rows=1')",
    ],
)
def test_that_check_can_fail(text: str) -> None:
    assert spelled(ast.parse(text))


@pytest.mark.parametrize("text", ["write epsilon = 1.", "compare it: n >= 10.", "spend a larger epsilon.", "x -- y, a_b==c"])
def test_toml_and_sql_are_no_arguments(text: str) -> None:
    assert not SPELLED.search(text)


# --- spelling ---------------------------------------------------------------------------------------------------


def test_one_fix_in_two_dialects_and_as_data() -> None:
    fix = Fix(
        "ask with {epsilon} and {assume_rows}, not {margin}; or {fresh}, {key}, {it} as in '1/2', {call}{opened} {plot} {path}",
        epsilon="0.1",
        assume_rows=1000,
        margin=Blank(),
        fresh=True,
        key=Blank("FILE"),
        it=Name("delta"),
        call=Python("Geometric(epsilon=1)"),
        opened=Python(", or dt.open(…)", shell=""),
        plot=Shell("--plot"),
        path=Text("{a}{0}"),
    )
    assert fix == (
        "ask with epsilon=\"0.1\" and assume_rows=1000, not margin=; or fresh=True, key=…, delta as in '1/2', "
        "Geometric(epsilon=1), or dt.open(…) --plot {a}{0}"
    )
    assert fix.spell(shell) == (
        "ask with --epsilon 0.1 and --rows 1000, not --margin; or --fresh, --key FILE, --delta as in '1/2', "
        "Geometric(epsilon=1) --plot {a}{0}"
    )
    assert fix.as_data()["parts"] == {
        "epsilon": {"argument": "epsilon", "value": "0.1"},
        "assume_rows": {"argument": "assume_rows", "value": 1000},
        "margin": {"argument": "margin", "value": None},
        "fresh": {"argument": "fresh", "value": True},
        "key": {"argument": "key", "value": None},
        "it": {"argument": "delta"},
        "call": {"python": "Geometric(epsilon=1)"},
        "opened": {"python": ", or dt.open(…)", "shell": ""},
        "plot": {"shell": "--plot"},
        "path": {"text": "{a}{0}"},
    }


@given(st.text())
def test_a_plain_text_is_a_fix_of_the_same_words_in_every_dialect(text: str) -> None:
    fix = Fix.of(text)
    assert fix == fix.spell(shell) == fix.spell(python) == text
    assert fix.as_data()["parts"] == {}


VALUES = st.one_of(st.text(), st.integers(), st.booleans(), st.builds(Blank, st.sampled_from(["", "FILE"])))
ANY_PART = st.one_of(
    st.builds(Argument, st.sampled_from(["epsilon", "fresh", "sensitivity"]), VALUES),
    st.builds(Name, st.sampled_from(["epsilon", "scale"])),
    st.builds(Python, st.text(), st.none() | st.text()),
    st.builds(Shell, st.text()),
    st.builds(Text, st.text()),
)


@given(ANY_PART, st.text())
def test_what_stands_in_a_part_is_never_read_as_words(part: Part, after: str) -> None:
    fix = Fix("{it}" + after.replace("{", "{{").replace("}", "}}"), it=part)
    assert fix == python(part) + after
    assert fix.spell(shell) == shell(part) + after
    assert json.loads(json.dumps(fix.as_data())) == fix.as_data()


def test_a_fix_is_copied_and_sent_to_another_process_whole() -> None:
    fix = Fix("write {analyst}.", analyst="ada")
    for again in (copy.copy(fix), copy.deepcopy(fix), pickle.loads(pickle.dumps(fix))):
        assert (again, again.words, again.parts) == (fix, fix.words, fix.parts)


# --- errors -----------------------------------------------------------------------------------------------------


def family(kind: type[dt.DitherError] = dt.DitherError) -> Iterator[type[dt.DitherError]]:
    yield kind
    for each in kind.__subclasses__():
        if each.__module__.startswith("dither"):
            yield from family(each)


def test_every_error_has_a_code_of_its_own_and_the_table_lists_them() -> None:
    import dither.client.transport
    import dither.ledger.streams
    import dither.tracing.refusals  # noqa: F401 (they have errors of their own)
    from dither import errors

    listed = dict(re.findall(r"^    (\w+Error) +(\w+ +\d)\b", errors.__doc__ or "", re.MULTILINE))
    kinds = [kind for kind in dict.fromkeys(family()) if kind is not OutputError]
    assert {kind.__name__: f"{kind.code} {kind.exit_code}" for kind in kinds} == {
        name: " ".join(codes.split()) for name, codes in listed.items()
    }
    assert len({kind.code for kind in (*kinds, OutputError)}) == len(kinds) + 1


ERRORS = {
    "plain": dt.DitherError("No.", where="here", fix="do {this}.", charged="ε = 1"),
    "argument": dt.ArgumentError("No.", fix=Fix("write {analyst}.", analyst="ada")),
    "query": dt.QueryError("No.", text="SELECT x", span=(7, 8)),
    "catalog": dt.CatalogError([(3, "No.", "declare it."), (None, "No.", "")], diagnosis=["a secret"]),
    "engine": dt.EngineError("ε = 1", diagnosis="a secret"),
}


def test_an_error_as_json() -> None:
    found = {name: json.loads(error.to_json()) for name, error in ERRORS.items()}
    assert found["plain"] == {
        "code": "usage",
        "what": "No.",
        "where": "here",
        "fix": {"words": "do {{this}}.", "parts": {}},
        "charged": "ε = 1",
    }
    assert found["argument"]["fix"] == {
        "words": "write {analyst}.",
        "parts": {"analyst": {"argument": "analyst", "value": "ada"}},
    }
    assert (found["query"]["code"], found["query"]["span"], found["query"]["fix"]) == ("query", [7, 8], None)
    assert found["query"]["where"] == "SELECT x\n       ^"
    declare = {"words": "declare it.", "parts": {}}
    assert found["catalog"]["problems"] == [
        {"line": 3, "what": "No.", "fix": declare},
        {"line": None, "what": "No.", "fix": None},
    ]
    assert (found["engine"]["code"], found["engine"]["charged"]) == ("engine", "ε = 1")
    assert "secret" not in json.dumps(found)
