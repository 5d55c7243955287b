"""Writes small Excel workbooks for tests, without a package for it."""

from __future__ import annotations

import datetime
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
_STYLES = '<cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/></cellXfs>'  # plain, date, date and time


def write_workbook(file: Path, sheets: dict[str, Sequence[Sequence[Any]]]) -> Path:
    """Writes sheets of text, numbers, bools, dates and timestamps; None is an empty cell."""
    names = list(sheets)
    links = "".join(_link(place, f"{_OFFICE}/worksheet", f"worksheets/sheet{place}.xml") for place in range(1, len(names) + 1))
    listed = "".join(f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(names, 1))
    types = (
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">{types}</Types>',
        "_rels/.rels": _links(_link(1, f"{_OFFICE}/officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _links(links + _link(len(names) + 1, f"{_OFFICE}/styles", "styles.xml")),
        "xl/styles.xml": f"<styleSheet {_MAIN}>{_STYLES}</styleSheet>",
    }
    for place, rows in enumerate(sheets.values(), 1):
        body = "".join(_row(number, row) for number, row in enumerate(rows, 1))
        parts[f"xl/worksheets/sheet{place}.xml"] = f"<worksheet {_MAIN}><sheetData>{body}</sheetData></worksheet>"
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, _HEAD + text)
    return file


def _links(inner: str) -> str:
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{inner}</Relationships>'


def _link(number: int, kind: str, target: str) -> str:
    return f'<Relationship Id="rId{number}" Type="{kind}" Target="{target}"/>'


def _row(number: int, cells: Sequence[Any]) -> str:
    return f'<row r="{number}">{"".join(_cell(f"{chr(65 + place)}{number}", cell) for place, cell in enumerate(cells))}</row>'


def _cell(place: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    if isinstance(value, datetime.datetime):
        past = value - datetime.datetime(1899, 12, 30)
        return f'<c r="{place}" s="2"><v>{past / datetime.timedelta(days=1)!r}</v></c>'
    if isinstance(value, datetime.date):
        return f'<c r="{place}" s="1"><v>{(value - datetime.date(1899, 12, 30)).days}</v></c>'
    return f'<c r="{place}"><v>{value!r}</v></c>'
