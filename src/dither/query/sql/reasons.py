"""Words and signs of SQL that are refused, each with the reason and what to write instead. gate.py looks them up."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

FOLLOWED = {  # if another token follows, the word is meant as a name
    **dict.fromkeys((TokenType.ANY, TokenType.SOME), TokenType.L_PAREN),
    **dict.fromkeys((TokenType.SEMI, TokenType.ANTI, TokenType.ASOF), TokenType.JOIN),
    **dict.fromkeys((TokenType.FIRST, TokenType.FORMAT, TokenType.VALUES, TokenType.UNNEST), TokenType.L_PAREN),
}
_SOME = "for = write x IN (SELECT y ...); for > compare with (SELECT MIN(y) ...), for < with (SELECT MAX(y) ...)."
_EQUAL = "write JOIN ... ON with columns that are equal."
REASONS: dict[TokenType, tuple[str, str]] = {
    TokenType.TABLE_SAMPLE: ("TABLESAMPLE draws rows at random, so the answer would not be about the data.", "leave it out."),
    TokenType.INTERVAL: ("INTERVAL is followed by a number and a unit.", "write x + INTERVAL 3 MONTH."),
    TokenType.FETCH: ("FETCH is not written like this.", "write FETCH FIRST 10 ROWS ONLY, or LIMIT 10."),
    TokenType.L_BRACE: ("Structures are not supported.", "use one column for each value."),
    TokenType.ARROW: ("Parts of structures are not supported.", "use one column for each value."),
    TokenType.ESCAPE: ("LIKE has no escape character here.", "write CONTAINS(x, '%') or STARTS_WITH(x, 'a_')."),
    TokenType.COLLATE: ("Texts are compared letter by letter, without a collation.", "write LOWER(x) on both sides."),
    **dict.fromkeys((TokenType.AMP, TokenType.PIPE), ("Bits of numbers are not supported.", "write it with // and %.")),
    TokenType.TRUNCATE: ("There is no function TRUNCATE.", "write TRUNC(x), or TRUNC(x, 2) for two digits."),
    TokenType.ISNULL: ("ISNULL is not supported.", "write x IS NULL, or COALESCE(x, y)."),
    TokenType.NOTNULL: ("NOTNULL is not supported.", "write x IS NOT NULL."),
    TokenType.SIMILAR_TO: ("SIMILAR TO is not supported.", "write x LIKE 'a%' or REGEXP_MATCHES(x, 'pattern')."),
    TokenType.RLIKE: ("RLIKE is not supported.", "write REGEXP_MATCHES(x, 'pattern')."),
    TokenType.GLOB: ("GLOB is not supported.", "write x LIKE 'a%'."),
    TokenType.TILDE: ("~ is not supported.", "write REGEXP_MATCHES(x, 'pattern'); for bits, -x - 1."),
    TokenType.LATERAL: ("LATERAL joins are not supported.", "write an ordinary JOIN ... ON."),
    TokenType.NATURAL: ("NATURAL JOIN hides which columns must be equal.", "write JOIN ... USING (column)."),
    TokenType.INTERSECT: ("INTERSECT compares the rows of different people.", "use EXISTS with the unit column equated."),
    TokenType.EXCEPT: ("EXCEPT compares the rows of different people.", "use NOT EXISTS with the unit column equated."),
    TokenType.SEMI: ("SEMI JOIN is not supported.", "write WHERE x IN (SELECT x FROM ...), or WHERE EXISTS (SELECT ...)."),
    TokenType.ANTI: ("ANTI JOIN is not supported.", "write WHERE x NOT IN (SELECT x FROM ...), or NOT EXISTS (SELECT ...)."),
    TokenType.ANY: ("ANY is not supported.", _SOME),
    TokenType.SOME: ("SOME is not supported.", _SOME),
    TokenType.RECURSIVE: ("Recursive queries are not supported.", "leave RECURSIVE out."),
    TokenType.FARROW: ("=> compares nothing.", "write >= for at least."),
    TokenType.DAMP: ("&& is not supported.", "write AND."),
    TokenType.IRLIKE: ("~* is not supported.", "write REGEXP_MATCHES(LOWER(x), 'pattern')."),
    TokenType.FIRST: ("FIRST shows the value of one row.", "choose among public values with MODE(x)."),
    TokenType.FORMAT: ("There is no function FORMAT.", "write CAST(x AS VARCHAR), and join texts with ||."),
    TokenType.XOR: ("XOR is not supported.", "write (x AND NOT y) OR (y AND NOT x)."),
    TokenType.JSON: ("Structures are not supported.", "use one column for each value."),
    TokenType.COLON_EQ: ("Arguments have no names here.", "write the values alone, in their order."),
    TokenType.OVERLAPS: ("OVERLAPS is not supported.", "write a_start <= b_end AND b_start <= a_end."),
    TokenType.VALUES: ("A list of rows is no table of the catalog.", "write x IN (1, 2, 3), or ask about a public table."),
    TokenType.UNNEST: ("UNNEST makes several rows of one.", "ask about a table that has these rows."),
    TokenType.INTO: ("The answer is returned, and no table is written.", "leave INTO and its table out."),
    TokenType.UNPIVOT: ("UNPIVOT is not supported.", "ask for each column: AVG(x) AS x, AVG(y) AS y."),
    TokenType.CURRENT_USER: ("CURRENT_USER is not about the data.", "write a constant."),
    TokenType.PERCENT: ("PERCENT is not supported.", "write a number of rows, as in LIMIT 10."),
    TokenType.CARET_AT: ("^@ is not supported.", "write STARTS_WITH(x, 'a')."),
    TokenType.APPLY: ("APPLY is not supported.", _EQUAL),
    TokenType.ASOF: ("ASOF joins are not supported.", _EQUAL),
    **{
        word: (f"{name} is written with a list of keys.", f"write GROUP BY {name} (a, b).")
        for word, name in ((TokenType.ROLLUP, "ROLLUP"), (TokenType.CUBE, "CUBE"), (TokenType.GROUPING_SETS, "GROUPING SETS"))
    },
}

MISWRITTEN = {  # pairs of words where the question cannot be read; "": any word
    ("SELECT", "TOP"): ("SELECT TOP is not supported.", "write ORDER BY n DESC LIMIT 10 at the end."),
    ("FILTER", "WHERE"): ("FILTER is followed by parentheses.", "write COUNT(*) FILTER (WHERE x > 3)."),
    ("", "PLACING"): ("OVERLAY is not supported.", "write 'new' || SUBSTRING(x, 3)."),
}
MEANINGLESS = {  # words that sqlglot takes and drops
    "AT": "leave AT TIME ZONE out: timestamps have no zone here.",
    "SYMMETRIC": "write BETWEEN LEAST(a, b) AND GREATEST(a, b).",
    "SAMPLE": "leave USING SAMPLE out: the answer is about all rows.",
}
