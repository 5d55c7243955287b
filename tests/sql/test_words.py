"""Words of SQL that are not answered: each refusal says what to write, and that works when it is pasted."""

from __future__ import annotations

import datetime
import re

import pytest
from sqlglot import exp

from dither.errors import QueryError
from dither.query.resolve.relations import resolve
from dither.query.sql import contexts, forms
from dither.query.sql.select import parse
from dither.query.sql.words import ADVICE, FUNCTIONS
from sql.survey import CATALOG
from sql.test_golden import cases

# What is written, a part of the fix, and the same question with that.
FIXED = [
    ("born < CURRENT_DATE", "DATE '2026-01-31'", "born < DATE '2026-01-31'"),
    ("born < NOW()", "TIMESTAMP '2026-01-31 12:30:00'", "born < TIMESTAMP '2026-01-31 12:30:00'"),
    ("born < TODAY()", "DATE '2026-01-31'", "born < DATE '2026-01-31'"),
    ("TO_CHAR(born, 'YYYY-MM-DD') = ''", "STRFTIME(x, '%Y-%m-%d')", "STRFTIME(born, '%Y-%m-%d') = ''"),
    ("TO_DATE(city, 'DD.MM.YYYY') > born", "STRPTIME(x, '%d.%m.%Y')", "STRPTIME(city, '%d.%m.%Y') > born"),
    ("DATEADD(month, 1, born) > born", "x + INTERVAL 1 MONTH", "born + INTERVAL 1 MONTH > born"),
    ("AGE(born, born) > 3", "DATE_DIFF('day', a, b)", "DATE_DIFF('day', born, born) > 3"),
    ("DATEDIFF(born, born) > 3", "DATE_DIFF('day', a, b)", "DATE_DIFF('day', born, born) > 3"),
    ("TRUNCATE(income, 2) > 3", "TRUNC(x, 2)", "TRUNC(income, 2) > 3"),
    ("NVL(age, 3) > 3", "COALESCE(x, y)", "COALESCE(age, 3) > 3"),
    ("ISNULL(age)", "x IS NULL", "age IS NULL"),
    ("DECODE(age, 1, 2) = 2", "CASE x WHEN 1 THEN 'a'", "CASE age WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END = 'a'"),
    ("CBRT(age) > 2", "SIGN(x) * POWER(ABS(x), 1.0 / 3)", "SIGN(age) * POWER(ABS(age), 1.0 / 3) > 2"),
    ("LOG2(age) > 2", "LN(x) / LN(2)", "LN(age) / LN(2) > 2"),
    ("CHARINDEX('a', city) > 2", "POSITION('a' IN x)", "POSITION('a' IN city) > 2"),
    ("STRING_SPLIT(city, ',') = ''", "SPLIT_PART(x, ',', 1)", "SPLIT_PART(city, ',', 1) = ''"),
    ("REGEXP_LIKE(city, 'a')", "REGEXP_MATCHES(x, 'pattern')", "REGEXP_MATCHES(city, 'pattern')"),
    ("city ~ 'a'", "REGEXP_MATCHES(x, 'pattern')", "REGEXP_MATCHES(city, 'pattern')"),
    ("city SIMILAR TO 'a%'", "x LIKE 'a%'", "city LIKE 'a%'"),
    ("SUFFIX(city, 'a')", "ENDS_WITH(x, 'a')", "ENDS_WITH(city, 'a')"),
    ("income // 2 > 3", "FLOOR(x / y)", "FLOOR(income / 2) > 3"),
    ("WEEKDAY(born) = 1", "ISODOW(x)", "ISODOW(born) = 1"),
    ("EXTRACT(EPOCH FROM born) > 3", "DATE_DIFF('second', a, b)", "DATE_DIFF('second', born, born) > 3"),
    ("(age, region) = (1, 'north')", "a = 1 AND b = 2", "age = 1 AND age = 2"),
    ("COUNT_IF(age > 1) > 2", "HAVING", "age > 1"),
]


@pytest.fixture(autouse=True)
def same_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contexts, "now", lambda: datetime.datetime(2026, 1, 31, 12, 30))


def ask(condition: str) -> None:
    text = f"SELECT COUNT(*) FROM people WHERE {condition}"
    resolve(parse(text, CATALOG), CATALOG, text)


@pytest.mark.parametrize(("written", "fix", "pasted"), FIXED)
def test_a_refusal_says_what_works(written: str, fix: str, pasted: str) -> None:
    with pytest.raises(QueryError) as refusal:
        ask(written)
    assert fix in refusal.value.fix
    assert refusal.value.span is not None
    ask(pasted)


def test_every_word_with_advice_is_refused_and_no_other() -> None:
    assert not set(ADVICE) & {*FUNCTIONS, *forms.FORMS} - {"DATE_ADD"}
    for word in ADVICE:
        with pytest.raises(QueryError) as refusal:
            ask(f"{word}(age) > 1")
        assert word in refusal.value.what
        assert "{" not in refusal.value.what + refusal.value.fix


@pytest.mark.parametrize(
    ("word", "near"), [("DATE_TRUNCC", "DATE_TRUNC"), ("COALESE", "COALESCE"), ("STRFTIM", "STRFTIME"), ("MEDIANN", "MEDIAN")]
)
def test_a_misspelt_function_names_a_function(word: str, near: str) -> None:
    with pytest.raises(QueryError, match=rf"did you mean {near}\?"):
        ask(f"{word}(age) > 1")


@pytest.mark.parametrize("word", ["STRP", "REGION", "PEOPLE", "CITY"])
def test_nothing_of_another_sort_is_proposed(word: str) -> None:
    """A function is not a column, and a column is not a function."""
    with pytest.raises(QueryError) as refusal:
        ask(f"{word}(age) > 1")
    assert not re.search("did you mean (region|people|city)", refusal.value.fix)
    with pytest.raises(QueryError) as missing:
        ask("ROUNDED > 1")
    assert "ROUND(" not in missing.value.fix


def test_no_name_of_a_syntax_tree_reaches_the_reader() -> None:
    """Names of classes and of their arguments, such as NULL SAFE NEQ and EXPRESSIONS."""
    classes = {found.__name__ for found in vars(exp).values() if isinstance(found, type) and issubclass(found, exp.Expr)}
    inner = {re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).upper() for name in classes}
    unlike = {name for name in inner if " " in name and name not in ("GROUP BY", "ORDER BY", "WITHIN GROUP")}
    for _, question, expected in cases("sql_to_error.txt"):
        what = expected.splitlines()[0]
        assert not [
            name for name in (*unlike, "EXPRESSIONS", "TUPLE") if f"{name} " in what and name not in question.upper()
        ], what


def test_that_check_can_fail() -> None:
    assert "Null Safe NEQ".upper() == re.sub(r"(?<=[a-z])(?=[A-Z])", " ", exp.NullSafeNEQ.__name__).upper()


@pytest.mark.parametrize(
    ("written", "expected"),
    [(".06 + 0.01", "0.07"), (".06 - 0.01", "0.05"), ("1 - 0.06", "0.94"), ("0.1 * 3", "0.3"), ("1.0 - -0.5", "1.5")],
)
def test_decimal_constants_are_computed_exactly(written: str, expected: str) -> None:
    """As databases do (TPC-H Q6). In doubles 0.06 + 0.01 is less than 0.07, and rows with 0.07 would be lost."""
    question = "SELECT COUNT(*) AS n FROM people WHERE income <= {}"
    one, two = (parse(question.format(each), CATALOG) for each in (written, expected))
    assert one.source == two.source


def test_that_doubles_would_differ() -> None:
    assert 0.06 + 0.01 < 0.07
