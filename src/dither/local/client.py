"""One person's side of a survey: draws a report once, and repeats it whenever it is asked again.

Why repeat: each new report about the same value spends epsilon again, and the average of many reports is the value. A stored
report spends nothing. If the value changes and a new report is drawn, both are about the same person: their prices add up, and
whoever sees both learns that something may have changed.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from dither.errors import ArgumentError
from dither.local.survey import LocalSurvey
from dither.privacy.losses import Pure


class LocalClient:
    """Reports for one person.

    `memory`: a file that stores the reports, so that they are repeated after a restart. Without it they are forgotten with the
    process. The file says what was reported, not what is true.

    >>> person = LocalClient(LocalSurvey.choice("smokes", ["no", "yes"], epsilon=1))
    >>> person.report("yes") == person.report("yes")
    True
    """

    def __init__(self, survey: LocalSurvey, memory: str | Path | None = None) -> None:
        if not isinstance(survey, LocalSurvey):
            raise ArgumentError("survey must be a LocalSurvey.", fix="read it with LocalSurvey.from_json.")
        if memory is not None and not isinstance(memory, (str, Path)):
            raise ArgumentError("memory must be the path of a file.", fix="give a path, or leave it out.")
        self.survey = survey
        self._path = None if memory is None else Path(memory)
        self._stored: dict[str, list[str]] = self._read()

    def report(self, value: Any, *, fresh: bool = False) -> bytes:
        """Returns the stored report, or draws one. `fresh` draws a new one and spends epsilon again."""
        if type(fresh) is not bool:
            raise ArgumentError("fresh must be True or False.", fix="leave it out.")
        drawn = self._stored.setdefault(self._key, [])
        if fresh or not drawn:
            report = self.survey.report(value)
            drawn.append(base64.b64encode(report).decode())
            self._write()  # before the report is shown: a crash must not lose what was spent
        return base64.b64decode(drawn[-1])

    def spent(self) -> Pure | None:
        """Returns what this person's reports to this survey cost together; None before the first."""
        count = len(self._stored.get(self._key, ()))
        return self.survey.loss().repeat(count) if count else None

    @property
    def _key(self) -> str:
        return self.survey.header.hex()

    def _read(self) -> dict[str, list[str]]:
        if self._path is None or not self._path.exists():
            return {}
        try:
            found = json.loads(self._path.read_text(encoding="utf-8"))
            if not isinstance(found, dict) or not all(isinstance(each, list) for each in found.values()):
                raise ValueError
            return found
        except (OSError, ValueError) as error:
            raise ArgumentError(
                f"The memory of this client cannot be read ({type(error).__name__}).",
                fix="restore the file: without it reports would be drawn, and paid for, again.",
            ) from None

    def _write(self) -> None:
        if self._path is None:
            return
        draft = self._path.with_name(self._path.name + ".new")
        draft.write_text(json.dumps(self._stored), encoding="utf-8")
        draft.replace(self._path)
