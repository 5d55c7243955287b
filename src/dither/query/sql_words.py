"""The words of SQL that mean something to us: functions, operators, types; and advice for some that do not."""

from __future__ import annotations

from sqlglot import exp


def _each(words: str) -> list[str]:
    return words.split()


FUNCTIONS: dict[str, str] = {
    **{name: name.lower() for name in _each("ABS FLOOR CEIL ROUND SQRT LN EXP POWER SIGN LEAST GREATEST CLAMP BUCKET")},
    **{name: name.lower() for name in _each("COALESCE NULLIF LOWER UPPER TRIM LENGTH SUBSTR STARTS_WITH CONTAINS")},
    **{name: name.lower() for name in _each("YEAR MONTH DAY QUARTER HOUR DATE_TRUNC DAYS_BETWEEN")},
    "CEILING": "ceil",
    "POW": "power",
    "LEN": "length",
    "CHAR_LENGTH": "length",
    "SUBSTRING": "substr",
    "ISODOW": "weekday",
}
_VALUES = "of a number take MIN, MAX or MEDIAN; of anything else count the values: SELECT x, COUNT(*) ... GROUP BY x."
ADVICE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        _each("RANDOM RAND UUID GEN_RANDOM_UUID NOW TODAY GETDATE SYSDATE CURRENT_DATE CURRENT_TIMESTAMP CURRENT_TIME"),
        ("{name} gives another value each time, so the answer would not be a function of the data.", "write a constant."),
    ),
    **dict.fromkeys(
        _each("FIRST LAST ANY_VALUE ARG_MAX ARG_MIN MAX_BY MIN_BY ARRAY_AGG LIST STRING_AGG GROUP_CONCAT"),
        ("{name} depends on the order of rows or shows their values.", _VALUES),
    ),
    **dict.fromkeys(
        _each("READ_CSV READ_CSV_AUTO READ_PARQUET READ_JSON READ_TEXT READ_BLOB GLOB PARQUET_SCAN GETENV"),
        ("{name} reads files, and only tables of the catalog are read.", "ask about a table of the catalog."),
    ),
    **dict.fromkeys(
        _each("ROW_NUMBER RANK DENSE_RANK LAG LEAD NTILE"),
        ("{name} is a window function, which looks across the rows of many people.", "aggregate with GROUP BY instead."),
    ),
    "CONCAT": ("CONCAT treats NULL in its own way.", "write a || b, with COALESCE where NULL can occur."),
    "WEEKDAY": ("WEEKDAY counts differently in different databases.", "write ISODOW(x): Monday is 1, Sunday is 7."),
    "DAYOFWEEK": ("DAYOFWEEK counts differently in different databases.", "write ISODOW(x): Monday is 1, Sunday is 7."),
    "LOG": ("LOG means different things in different databases.", "write LN(x)."),
    "DATEDIFF": ("DATEDIFF takes its arguments in different orders.", "write DAYS_BETWEEN(a, b)."),
    "DATE_DIFF": ("DATE_DIFF takes its arguments in different orders.", "write DAYS_BETWEEN(a, b)."),
}
BINARY: dict[type[exp.Expr], str] = {
    exp.Add: "add",
    exp.Sub: "sub",
    exp.Mul: "mul",
    exp.Div: "div",
    exp.Mod: "mod",
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "concat",
}
TYPES: dict[str, str] = {
    **dict.fromkeys(("INT", "BIGINT"), "to_int"),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), "to_real"),
    **dict.fromkeys(("VARCHAR", "TEXT"), "to_text"),
    "DATE": "to_date",
    "BOOLEAN": "to_bool",
}
