"""The words of SQL functions: what they mean here, and what to write instead of those that are not answered.

A word is in FUNCTIONS if it is another name of a function of the registry, and in forms.py if its arguments are rearranged.
ADVICE has the words that people try and that cannot or need not be answered, each with what to write.
"""

from __future__ import annotations

from sqlglot import exp

from dither.query.nodes import by_word
from dither.query.sql.contexts import constant_for
from dither.query.sql.names import Scope, refuse
from dither.text import did_you_mean


def _each(words: str) -> list[str]:
    return words.split()


FUNCTIONS: dict[str, str] = {
    **{
        name: name.lower()
        for name in _each("ABS FLOOR CEIL ROUND TRUNC SQRT LN EXP POWER SIGN MOD LEAST GREATEST CLAMP BUCKET")
    },
    **{name: name.lower() for name in _each("COALESCE NULLIF LOWER UPPER TRIM LTRIM RTRIM LENGTH STARTS_WITH ENDS_WITH")},
    **{name: name.lower() for name in _each("CONTAINS RIGHT REPLACE SPLIT_PART REGEXP_MATCHES WIDTH_BUCKET")},
    **{name: name.lower() for name in _each("YEAR MONTH DAY QUARTER HOUR MINUTE SECOND WEEK ISOYEAR DAYOFWEEK DAYOFYEAR")},
    **{name: name.lower() for name in _each("DAYNAME MONTHNAME DATE_TRUNC DAYS_BETWEEN MAKE_DATE LAST_DAY STRPTIME")},
    "CEILING": "ceil",
    "POW": "power",
    "LEN": "length",
    "CHAR_LENGTH": "length",
    "STRPOS": "position",
    "INSTR": "position",
    "ISODOW": "weekday",
    "DAYOFMONTH": "day",
    "WEEKOFYEAR": "week",
    "IFNULL": "coalesce",
    "DATE": "to_date",
}
PARTS: dict[str, str] = {
    **{name: name.lower() for name in _each("YEAR QUARTER MONTH WEEK DAY HOUR MINUTE SECOND ISOYEAR")},
    "ISODOW": "weekday",
    "DOW": "dayofweek",
    "DAYOFWEEK": "dayofweek",
    "DOY": "dayofyear",
    "DAYOFYEAR": "dayofyear",
}
TYPES: dict[str, str] = {
    **dict.fromkeys(("INT", "BIGINT"), "to_int"),
    **dict.fromkeys(("DOUBLE", "FLOAT", "DECIMAL"), "to_real"),
    **dict.fromkeys(("VARCHAR", "TEXT"), "to_text"),
    "DATE": "to_date",
    "BOOLEAN": "to_bool",
}

_VALUES = "choose among public values with MODE(x), or count them: SELECT x, COUNT(*) AS n ... GROUP BY x."
_BEST = "ask which group has the most: SELECT x, AVG(y) AS m ... GROUP BY x ORDER BY m DESC LIMIT 1."
_FORMAT = "write STRFTIME(x, '%Y-%m-%d'), with the parts that you need."
_READ = "write STRPTIME(x, '%d.%m.%Y'), or CAST(x AS DATE) for texts such as 1995-01-31."
_LATER = "write x + INTERVAL 1 MONTH or x - INTERVAL 90 DAY."
_APART = "write DATE_DIFF('day', a, b), with 'month', 'year' or another unit: from a to b."
_EACH = "count each value: SELECT x, COUNT(*) AS n ... GROUP BY x."
_BITS = "write it with //, % and *: x // 2 % 2 is the second bit of x."
_STRUCTURE = "use one column for each value."
_SPREAD = "ask for the median first, and then for MEDIAN(ABS(x - 40)) if it is 40."
_COLUMN = "let the curator add a column that holds it, or use the functions listed in docs/queries.md."
ADVICE: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        _each("RANDOM RAND UUID GEN_RANDOM_UUID"),
        ("{name} gives another value each time, so the answer would not be a function of the data.", "write a constant."),
    ),
    **dict.fromkeys(
        _each("NOW TODAY GETDATE SYSDATE CURDATE CURRENT_DATE CURRENT_TIMESTAMP CURRENT_TIME CURRENT_DATETIME LOCALTIMESTAMP"),
        ("{name} gives another value each time, so the answer would not be a function of the data.", "{now}"),
    ),
    **dict.fromkeys(
        _each("FIRST LAST ANY_VALUE FIRST_VALUE LAST_VALUE"),
        ("{name} shows the value of one row.", _VALUES),
    ),
    **dict.fromkeys(
        _each("ARG_MAX ARG_MIN ARGMAX ARGMIN MAX_BY MIN_BY"),
        ("{name} shows the value of the one row that has the most or the least.", _BEST),
    ),
    **dict.fromkeys(
        _each(
            "ARRAY_AGG LIST LIST_AGG STRING_AGG GROUP_CONCAT LISTAGG JSON_AGG JSON_OBJECT_AGG JSON_GROUP_ARRAY XMLAGG MAP_AGG"
        ),
        ("{name} shows the values of all rows.", "count them: SELECT x, COUNT(*) AS n ... GROUP BY x."),
    ),
    **{
        name: (f"{name} is not supported.", f"write {other}.")
        for name, other in {
            "REGR_SXX": "REGR_COUNT(y, x) * VAR_POP(x) FILTER (WHERE y IS NOT NULL)",
            "REGR_SYY": "REGR_COUNT(y, x) * VAR_POP(y) FILTER (WHERE x IS NOT NULL)",
            "REGR_SXY": "REGR_COUNT(y, x) * COVAR_POP(y, x)",
            "PRODUCT": "EXP(SUM(LN(CLAMP(x, 1, 100)))), with bounds above 0",
            "FSUM": "SUM(x): sums are exact",
            "KAHAN_SUM": "SUM(x): sums are exact",
            "SUMKAHAN": "SUM(x): sums are exact",
            "SEM": "STDDEV(x) / SQRT(COUNT(x))",
            "RESERVOIR_QUANTILE": "QUANTILE(x, 0.5)",
            "APPROX_PERCENTILE": "APPROX_QUANTILE(x, 0.5)",
            "PERCENTILE_APPROX": "APPROX_QUANTILE(x, 0.5)",
            "APPROX_MEDIAN": "MEDIAN(x)",
            "EVERY": "COUNT_IF(NOT x > 3), which is 0 if it holds for all, or BOOL_AND(x > 3) in a subquery per person",
            "TRIMMED_MEAN": "AVG(CLAMP(x, 5, 95)), with bounds that leave out the extremes",
            "FAVG": "AVG(x): sums are exact",
            "ENTROPY": "SELECT x, COUNT(*) AS n ... GROUP BY x, and compute it from the counts",
            "APPROX_TOP_K": "SELECT x, COUNT(*) AS n ... GROUP BY x ORDER BY n DESC LIMIT 3",
        }.items()
    },
    "HISTOGRAM": (
        "HISTOGRAM gives one row for each value, so it is the only aggregate of a question.",
        "write SELECT HISTOGRAM(x) AS n ..., HISTOGRAM(BUCKET(x, 10)) for bins, or SELECT x, COUNT(*) AS n, ... GROUP BY x.",
    ),
    **dict.fromkeys(
        _each("READ_CSV READ_CSV_AUTO READ_PARQUET READ_JSON READ_TEXT READ_BLOB GLOB PARQUET_SCAN GETENV"),
        ("{name} reads files, and only tables of the catalog are read.", "ask about a table of the catalog."),
    ),
    **dict.fromkeys(
        _each("ROW_NUMBER RANK DENSE_RANK LAG LEAD NTILE FIRST_VALUE LAST_VALUE"),
        (
            "{name} is a window function, and it has no OVER.",
            "add OVER (PARTITION BY ... ORDER BY ...), with the unit column in PARTITION BY, in a subquery.",
        ),
    ),
    **dict.fromkeys(_each("MAD MEDIAN_ABSOLUTE_DEVIATION"), ("{name} is not supported.", _SPREAD)),
    **dict.fromkeys(
        _each("HISTOGRAM_EXACT BITSTRING_AGG CHECKSUM TOP TOPK APPROX_MOST_FREQUENT"), ("There is no function {name}.", _EACH)
    ),
    **dict.fromkeys(_each("BIT_AND BIT_OR BIT_XOR BIT_COUNT BITAND BITOR BITXOR XOR"), ("There is no function {name}.", _BITS)),
    **dict.fromkeys(
        _each("ROW STRUCT_PACK MAP JSON_EXTRACT JSON_VALUE JSON_OBJECT"), ("{name} makes a structure.", _STRUCTURE)
    ),
    **dict.fromkeys(
        _each("LIST_CONTAINS ARRAY_CONTAINS LIST_HAS LIST_VALUE ARRAY"),
        ("{name} is about lists, and lists are not supported.", "write x IN (1, 2, 3)."),
    ),
    **dict.fromkeys(
        _each("LEVENSHTEIN EDITDIST3 DAMERAU_LEVENSHTEIN JACCARD JARO_SIMILARITY JARO_WINKLER_SIMILARITY SOUNDEX DIFFERENCE"),
        ("There is no function {name}.", "write x LIKE 'Sm_th%' or REGEXP_MATCHES(x, '^Sm[iy]th'), or " + _COLUMN),
    ),
    **dict.fromkeys(
        _each("MD5 SHA1 SHA256 HASH CRC32 ORA_HASH FARM_FINGERPRINT NEXTVAL"),
        ("{name} tells people apart, and says nothing about many of them.", "leave it out, or compare x itself: x = 'a'."),
    ),
    **dict.fromkeys(
        _each("ASCII ORD UNICODE CHR CHAR"), ("There is no function {name}.", "compare letters: LEFT(x, 1) = 'A'.")
    ),
    "REPEAT": ("There is no function REPEAT.", "write x || x."),
    **dict.fromkeys(_each("ISNAN IS_NAN"), ("There is no function {name}: NaN is NULL here.", "write x IS NULL.")),
    **dict.fromkeys(
        _each("ISFINITE ISINF"), ("There is no function {name}: infinities are bounds here.", "write x IS NOT NULL.")
    ),
    **dict.fromkeys(_each("SIN COS TAN ASIN ACOS ATAN ATAN2 RADIANS DEGREES"), ("There is no function {name}.", _COLUMN)),
    "PI": ("There is no function PI.", "write 3.141592653589793."),
    **dict.fromkeys(_each("GCD LCM FACTORIAL GAMMA LGAMMA"), ("There is no function {name}.", _COLUMN)),
    **dict.fromkeys(
        _each("TIME_BUCKET DATE_BIN DATE_FLOOR"),
        ("There is no function {name}.", "write DATE_TRUNC('month', x), also with 'day', 'week', 'quarter' or 'year'."),
    ),
    "YEARWEEK": ("There is no function YEARWEEK.", "write ISOYEAR(x) * 100 + WEEK(x)."),
    "DECADE": ("There is no function DECADE.", "write FLOOR(YEAR(x) / 10) * 10."),
    "CENTURY": ("There is no function CENTURY.", "write CEIL(YEAR(x) / 100)."),
    **dict.fromkeys(
        _each("JULIAN EPOCH_MS EPOCH_US EPOCH_NS UNIX_TIMESTAMP TO_DAYS"), ("There is no function {name}.", _APART)
    ),
    **dict.fromkeys(_each("MILLISECOND MICROSECOND NANOSECOND"), ("There is no function {name}.", "write SECOND(x).")),
    "DATEPART": ("There is no function DATEPART.", "write DATE_PART('year', x), or YEAR(x)."),
    "IFF": ("There is no function IFF.", "write IF(x > 1, y, z)."),
    "CHOOSE": ("There is no function CHOOSE.", "write CASE x WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END."),
    "NULLIFZERO": ("There is no function NULLIFZERO.", "write NULLIF(x, 0)."),
    "ZEROIFNULL": ("There is no function ZEROIFNULL.", "write COALESCE(x, 0)."),
    "EXISTS": ("EXISTS is followed by a subquery.", "write x IS NOT NULL, or EXISTS (SELECT 1 FROM ... WHERE ...)."),
    "COLUMNS": ("COLUMNS stands for several columns.", "name each column: AVG(x) AS x, AVG(y) AS y."),
    **dict.fromkeys(
        _each("VERSION CURRENT_SETTING CURRENT_SCHEMA CURRENT_DATABASE SESSION_USER USER"),
        ("{name} is not about the data.", "write a constant."),
    ),
    "WEEKDAY": ("WEEKDAY counts differently in different databases.", "write ISODOW(x): Monday is 1, Sunday is 7."),
    "LOG": ("LOG has several meanings in databases.", "write LN(x), or LN(x) / LN(10)."),
    **dict.fromkeys(_each("LOG10 LOG2"), ("{name} is not supported.", "write LN(x) / LN(10), or LN(x) / LN(2).")),
    "LOG2": ("There is no function LOG2.", "write LN(x) / LN(2)."),
    **dict.fromkeys(_each("TO_CHAR DATE_FORMAT FORMAT_DATE"), ("There is no function {name}.", _FORMAT)),
    **dict.fromkeys(_each("TO_DATE STR_TO_DATE PARSE_DATE TRY_STRPTIME TO_TIMESTAMP"), ("There is no function {name}.", _READ)),
    **dict.fromkeys(_each("DATEADD DATE_SUB DATESUB ADDDATE SUBDATE ADD_MONTHS"), ("There is no function {name}.", _LATER)),
    "DATE_ADD": ("DATE_ADD is not written like this.", _LATER),
    **dict.fromkeys(_each("AGE TIMESTAMPDIFF MONTHS_BETWEEN EPOCH"), ("There is no function {name}.", _APART)),
    **dict.fromkeys(_each("FIX"), ("There is no function {name}.", "write TRUNC(x), or TRUNC(x, 2) for two digits.")),
    **dict.fromkeys(_each("NVL2"), ("There is no function {name}.", "write x IS NULL, or COALESCE(x, y).")),
    "NVL": ("There is no function NVL.", "write COALESCE(x, y)."),
    "DECODE": ("There is no function DECODE.", "write CASE x WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END."),
    "SQUARE": ("There is no function SQUARE.", "write x * x."),
    "CBRT": ("There is no function CBRT.", "write SIGN(x) * POWER(ABS(x), 1.0 / 3)."),
    **dict.fromkeys(_each("LCASE LOWERCASE CASEFOLD"), ("There is no function {name}.", "write LOWER(x).")),
    **dict.fromkeys(_each("UCASE UPPERCASE"), ("There is no function {name}.", "write UPPER(x).")),
    "PREFIX": ("There is no function PREFIX.", "write STARTS_WITH(x, 'a')."),
    "SUFFIX": ("There is no function SUFFIX.", "write ENDS_WITH(x, 'a')."),
    **dict.fromkeys(_each("CHARINDEX LOCATE"), ("{name} takes its arguments in its own order.", "write POSITION('a' IN x).")),
    **dict.fromkeys(
        _each("SPLIT STRING_SPLIT STR_SPLIT STRING_TO_ARRAY"),
        ("{name} makes a list, and lists are not supported.", "write SPLIT_PART(x, ',', 1) for its first part."),
    ),
    **dict.fromkeys(
        _each("REGEXP_REPLACE REGEXP_EXTRACT REGEXP_SUBSTR TRANSLATE INITCAP REVERSE LPAD RPAD FORMAT PRINTF CONCAT_WS"),
        ("There is no function {name}.", "write it with REPLACE, SPLIT_PART, SUBSTRING and ||, or " + _COLUMN),
    ),
    **dict.fromkeys(_each("REGEXP_LIKE RLIKE"), ("There is no function {name}.", "write REGEXP_MATCHES(x, 'pattern').")),
    **dict.fromkeys(
        _each("UNNEST EXPLODE GENERATE_SERIES RANGE"),
        ("{name} makes several rows of one.", "ask about a table that has these rows."),
    ),
}


def unknown_function(name: str, node: exp.Expr, scope: Scope, others: tuple[str, ...] = ()) -> Exception:
    """Returns the refusal of a function: what to write instead, or the function with the most similar name."""
    if name in ADVICE:
        what, fix = ADVICE[name]
        fix = constant_for(name) if fix == "{now}" else fix
        return refuse(scope, node, what.format(name=name), fix)
    near = did_you_mean(name, [each for each in (*FUNCTIONS, *others, *by_word()) if each[:1] == name[:1]]).rstrip()
    return refuse(scope, node, f"There is no function {name[:40]}.", near or _COLUMN)
