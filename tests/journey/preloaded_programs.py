"""The two programs of preloaded.py: a server that has loaded the command line, and a client that runs it there.

python preloaded_programs.py serve ADDRESS          python preloaded_programs.py ADDRESS [words]
"""

from __future__ import annotations

import os
import socket
import sys

MOST = 10  # files that a caller can hand over: 0 to 9


def call(address: str, words: list[str]) -> int:
    """The client: hands over all it has, and waits for the exit code."""
    files = [number for number in range(MOST) if _is_open(number)]
    spare = [os.open(os.devnull, os.O_RDONLY) for number in range(3) if number not in files]  # a socket gets no such number
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(address)
        for number in spare:
            os.close(number)
        environment = [part for pair in os.environ.items() for part in pair]
        parts = [os.getcwd(), ",".join(map(str, files)), str(len(words)), *words, *environment]
        text = "\0".join(parts).encode("utf-8", "surrogateescape")
        link.sendall(len(text).to_bytes(8, "big"))
        socket.send_fds(link, [b"."], files) if files else link.sendall(b".")
        link.sendall(text)
        return int(link.recv(16) or b"1")


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def serve(address: str) -> None:
    """The server: forks for each call until stdin is closed. Returns in each fork, which has become the caller's command."""
    import select
    import signal

    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    os.write(1, b"ready\n")
    while listening in select.select([listening, 0], [], [])[0]:
        link, _ = listening.accept()
        if os.fork():
            link.close()
            continue
        listening.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        return _become(link)
    os._exit(0)


def _become(link: socket.socket) -> None:
    length = int.from_bytes(_read(link, 8), "big")
    _, files, _, _ = socket.recv_fds(link, 1, MOST)
    where, numbers, count, *rest = _read(link, length).decode("utf-8", "surrogateescape").split("\0")
    if child := os.fork():
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        link.sendall(str(ended if ended >= 0 else 128 - ended).encode())
        os._exit(0)
    link.close()
    high = [os.dup2(file, MOST + 50 + place) for place, file in enumerate(files)]  # out of the way of 0 to 9
    os.closerange(0, MOST + 50)
    for number, file in zip(filter(None, numbers.split(",")), high, strict=True):
        os.dup2(file, int(number))
        os.close(file)
    os.chdir(where)
    os.environ.clear()
    given = rest[int(count) :]
    os.environ.update(zip(given[::2], given[1::2], strict=True))
    sys.argv = ["dither", *rest[: int(count)]]
    _streams()


def _read(link: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += link.recv(size - len(found))
    return found


def _streams() -> None:
    """As Python makes them when it starts: none where nothing is open."""
    encoding = os.environ.get("PYTHONIOENCODING") or "utf-8"
    for number, name, errors in ((0, "stdin", "strict"), (1, "stdout", "strict"), (2, "stderr", "backslashreplace")):
        made = None
        if _is_open(number):
            mode, lines = ("w", number == 2 or os.isatty(number)) if number else ("r", False)
            made = open(number, mode, 1 if lines else -1, encoding=encoding, errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, made)
        setattr(sys, f"__{name}__", made)


def _end(code: object) -> None:
    """As Python ends, but for taking down all that was loaded. What cannot be flushed is left to Python."""
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    if code is None or isinstance(code, int):
        os._exit((code or 0) & 255)


if __name__ == "__main__":
    if sys.argv[1] != "serve":
        sys.exit(call(sys.argv[1], sys.argv[2:]))
    import gc

    import dither.audit
    import dither.cli
    import dither.curator
    import dither.demo
    import dither.engines.duckdb.sources
    import dither.plots

    gc.freeze()  # a collection would write to every page that is shared with the server
    serve(sys.argv[2])
    try:
        dither.cli.main()
    except SystemExit as ended:
        _end(ended.code)
    _end(0)
