"""Tokens of servers that `dither login` has stored: one file in the user's configuration folder, for its owner only."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dither.client.known import default_file, replace_json
from dither.errors import DitherError, Fix, Shell

_FORMAT = 1


@dataclass(frozen=True)
class Login:
    """A token for one server. `made`: `dither login` made it from a password, so that `dither logout` ends it."""

    name: str
    token: str
    made: bool = False

    def __repr__(self) -> str:
        return f"Login({self.name!r})"


class Logins:
    """The file of tokens, beside the one of known servers."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = default_file().with_name("tokens.json") if path is None else path

    def find(self, origin: str) -> Login | None:
        """Returns the login for a server; None if there is none."""
        found = self._read().get(origin)
        if found is None:
            return None
        try:
            return Login(str(found["name"]), str(found["token"]), bool(found["made"]))
        except (TypeError, KeyError):
            raise self._unusable("cannot be read") from None

    def servers(self) -> list[str]:
        return sorted(self._read())

    def keep(self, origin: str, login: Login) -> None:
        self._write({**self._read(), origin: asdict(login)})

    def forget(self, origin: str) -> None:
        self._write({name: each for name, each in self._read().items() if name != origin})

    def _read(self) -> dict[str, Any]:
        try:
            with self.path.open("rb") as file:
                text, mode = file.read(), os.fstat(file.fileno()).st_mode
            data = json.loads(text)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            raise self._unusable("cannot be read") from None
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise self._unusable("is open to other users of this machine", f"chmod 600 {self.path}")
        if not isinstance(data, dict) or data.get("format") != _FORMAT or not isinstance(data.get("servers"), dict):
            raise self._unusable("cannot be read")
        return dict(data["servers"])

    def _write(self, servers: dict[str, Any]) -> None:
        try:
            replace_json(self.path, {"format": _FORMAT, "servers": servers})
        except OSError:
            raise self._unusable("cannot be written", "give this user write access to its folder.") from None

    def _unusable(self, why: str, fix: str = "") -> DitherError:
        return DitherError(
            f"{self.path} {why}: it has your tokens.",
            fix=fix or Fix("remove it, and log in again: {it}.", it=Shell("dither login")),
        )
