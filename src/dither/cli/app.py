"""The application: its shared options, exit codes and signal handlers.

The fixes of errors are shown as options: `analyst="ada"` in Python is `--analyst ada` here. Only `main` installs signal
handlers; the library does not. Exit codes (errors.py has that of each error):

0   done
1   the question is refused, or problems were found (check, verify)
2   wrong usage: an unknown option, an invalid argument, a missing file
3   the budget does not allow the question
4   the ledger or the engine failed, or the output cannot be written
130 interrupted (Ctrl-C), 143 terminated (SIGTERM), 141 the reader of the output is gone (a broken pipe)
"""

from __future__ import annotations

import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from dither import __version__
from dither.cli.output import Outputs, protected
from dither.cli.screen import OutputError, discard_stdout, note, print_error
from dither.errors import ArgumentError, DitherError, DitherWarning, Fix, Interrupted, Shell
from dither.options import shell

INTERRUPTED, UNREAD, TERMINATED = 130, 141, 143

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))

UNKNOWN = "nothing, unless `dither history` shows a new entry"  # where it is unknown whether a price was written

_received: list[int] = []
_reported: list[str] = []


class Stopped(KeyboardInterrupt):
    """A signal was received. Not a plain KeyboardInterrupt: once that leaves code run by C, such as an import, Python always
    ends by SIGINT."""


@contextmanager
def handle_signals() -> Iterator[None]:
    """Raises Stopped on the first of SIGNALS, so that the charge is reported; a second signal ends the process.

    Sets the exit code for signals and broken pipes, even if a library turned them into other errors.
    """
    _received.clear()
    _reported.clear()
    before = {each: signal.getsignal(each) or signal.SIG_DFL for each in SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # do not stop nohup and background jobs
            signal.signal(number, _stop)
    try:
        yield
    except KeyboardInterrupt:
        raise SystemExit(report_stop(UNKNOWN)) from None
    except SystemExit as end:
        if _received and not _reported:  # the option parser was interrupted, and exits without a message
            raise SystemExit(report_stop(UNKNOWN)) from None
        if isinstance(end.__context__, BrokenPipeError):  # as Rich and Click raise it
            raise SystemExit(UNREAD) from None
        raise
    except Exception:
        if _received:  # a library that was being imported raised another error
            raise SystemExit(report_stop(UNKNOWN)) from None
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def signal_exit_code() -> int:
    """Returns the exit code for the received signal."""
    return 128 + (_received[0] if _received else signal.SIGINT)


def forget_signal() -> None:
    """Forgets the signal that ended a server: it did what it was told, so nothing is reported and the exit code is 0."""
    _received.clear()


def report_stop(charged: str) -> int:
    """Prints to stderr what stopped the command and what was charged. Returns the exit code."""
    _reported.append(charged)
    print_error(f"{'Terminated' if signal_exit_code() == TERMINATED else 'Interrupted'}.\n  Charged: {charged}.")
    return signal_exit_code()


def _stop(number: int, frame: FrameType | None) -> None:
    for each in SIGNALS:
        if signal.getsignal(each) is _stop:
            signal.signal(each, signal.SIG_DFL)
    _received.append(number)
    raise Stopped


if TYPE_CHECKING:
    from dither.curator import Curator


# The order in `dither --help`: the order of use.
_ORDER = (
    *("init", "check", "suggest", "quote", "ask", "stream", "graph", "budget", "history", "verify"),
    *("backup", "restore", "witness", "close", "reopen", "rotate", "approvals"),
    *("serve", "people", "login", "logout", "explain", "audit", "local", "demo"),
)


class Commands(TyperGroup):
    """Turns every error a user can cause into a text on stderr and an exit code."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=_ORDER.index)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:  # a shell completes a half-written line
            _check_given_once(command, command.context_class(command, info_name=name, parent=ctx), rest)
        return name, command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # raises a broken pipe here, not when the interpreter exits
        except DitherError as error:
            raise _refused(error) from None
        except KeyboardInterrupt as stopped:
            raise typer.Exit(report_stop(stopped.charged if isinstance(stopped, Interrupted) else UNKNOWN)) from None
        except BrokenPipeError:
            discard_stdout()
            raise typer.Exit(UNREAD) from None
        except OSError:  # nothing was charged: writing after a charge is inside `output.reporting_charge`
            lost = OutputError("The output cannot be written.", fix="make room, or send it elsewhere, and try again.")
            raise _refused(lost) from None
        return result


def _check_given_once(command: Any, ctx: Any, words: list[str]) -> None:
    """Refuses two values for an option that takes one: guessing could charge the wrong price."""
    *_, given = command.make_parser(ctx).parse_args(args=list(words))
    valued = [one for one in given if one.param_type_name == "option" and not (one.is_flag or one.multiple or one.count)]
    for one in valued:
        if valued.count(one) > 1:
            raise ArgumentError(f"{one.opts[0]} is given more than once.", fix="give it once: only one value can hold.")


def _refused(error: DitherError) -> typer.Exit:
    """Prints the error to stderr and returns the exit."""
    if isinstance(error, OutputError):
        discard_stdout()
    print_error(error.text_in(shell))
    return typer.Exit(error.exit_code)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,  # they show the values of variables, which may be rows
    help="Answer questions about personal data with differential privacy, within a budget.",
)


def _version(question_text: bool) -> None:
    if question_text:
        typer.echo(f"dither {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Answer questions about personal data with differential privacy, within a budget."""


CATALOG = Path("catalog.toml")

Catalog = Annotated[Path, typer.Option("--catalog", "-c", help="Catalog file.")]
Ledger = Annotated[
    str | None,
    typer.Option("--ledger", "-l", envvar="DITHER_LEDGER", help="Path or postgresql:// URL. Default: beside the catalog."),
]
Key = Annotated[
    Path | None, typer.Option("--key", envvar="DITHER_KEY", help="The curator's key file. Default: beside the ledger.")
]
Witness = Annotated[
    Path | None,
    typer.Option(envvar="DITHER_WITNESS", help="File of heads to compare the ledger with. See: dither witness."),
]
Analyst = Annotated[
    str | None, typer.Option("--analyst", "-a", envvar="DITHER_ANALYST", help="Name of the analyst, if there are quotas.")
]
Question = Annotated[str | None, typer.Argument(help="Question in SQL, or - to read it from stdin.", show_default=False)]
File = Annotated[
    str | None,
    typer.Option(
        "--file", "-f", help="File of questions separated by ;, asked at one price (- for stdin). Use it instead of one."
    ),
]
Weights = Annotated[str | None, typer.Option(help="Weight of each question of --file, such as 2,1. Default: all the same.")]
Epsilon = Annotated[str | None, typer.Option("--epsilon", "-e", help="Price to pay, such as 0.1 or 1/3.")]
Delta = Annotated[str | None, typer.Option(help="Delta to pay, if the catalog has one. Default: in proportion to epsilon.")]
Margin = Annotated[
    str | None, typer.Option("--margin", "-m", help="Margin (±) to reach at the lowest price. Use it instead of --epsilon.")
]
Of = Annotated[str | None, typer.Option("--of", help="Number that a --margin in percent is a share of, such as 12000.")]
Confidence = Annotated[str, typer.Option(help="Confidence of the margins.")]
Rows = Annotated[int | None, typer.Option("--rows", min=1, help="Number of rows to assume for the margins of means.")]
Consistent = Annotated[
    bool,
    typer.Option(
        "--consistent", help="Make counts whole, not negative and adding up, for publication. Free; their margins grow."
    ),
]
LeftOut = Annotated[
    bool | None,
    typer.Option(
        "--left-out/--no-left-out",
        help="Estimate what bounds leave out, for 5 % of the price. Default: as the catalog says.",
        show_default=False,
    ),
]
Sample = Annotated[
    str | None, typer.Option(help="Look at a secret sample: the probability of each person, as 1/10.", show_default=False)
]
MaxRows = Annotated[str | None, typer.Option(help="Most rows per person in one group, or auto. Default: the catalog's.")]
MaxGroups = Annotated[str | None, typer.Option(help="Most groups per person, or auto. Default: the catalog's.")]

Param = Annotated[
    list[str] | None,
    typer.Option(
        "--param", help="Value of a parameter of the question: name=value, or 1=value for ? and $1.", show_default=False
    ),
]


def existing_catalog(catalog: Path) -> Path:
    """Returns the catalog file. Refuses a missing one and says how to create it."""
    if not catalog.exists():
        raise ArgumentError(
            f"There is no catalog {catalog} here.",
            fix=Fix(
                "name it with {catalog}, or draft one: {init}.",
                catalog=Shell("--catalog"),
                init=Shell("dither init people.parquet --unit person_id"),
            ),
        )
    return _file(catalog)


def _file(catalog: Path) -> Path:
    if catalog.is_dir():
        raise ArgumentError(
            f"{catalog} is a folder, and a catalog is a file.",
            fix=Fix("name it, as in {it}.", it=Shell("--catalog catalog.toml")),
        )
    return catalog


def ledger_place(catalog: Path, ledger: str | None) -> str:
    """Returns the place of the ledger: as named, or beside the catalog."""
    return ledger or str(_file(catalog).with_suffix(".ledger"))


def existing_ledger(catalog: Path, ledger: str | None) -> str:
    """Returns the place of the ledger. Refuses a missing ledger: a misspelt path must not start a new budget."""
    from dither.ledger import opening

    where = ledger_place(catalog, ledger)
    opening.find(where).close()
    return where


def ledger_files(where: str, key: Path | None, witness: Path | None = None) -> dict[str, Path]:
    """Returns the files that no output may replace: the ledger (if it is a file), its key, its notes and its witness."""
    from dither.diagnosis import notes_beside
    from dither.ledger import opening
    from dither.ledger.marks import marks_beside

    files = {} if opening.is_address(where) else {"the ledger": Path(where)}
    if key or files:
        key = opening.key_path(where, key)
        files |= {"the key": key, "the next key": opening.next_key(key), "the marks of the data": marks_beside(key)}
    files |= {f"the failures noted for {name}": notes_beside(file) for name, file in list(files.items())}
    return files | ({} if witness is None else {"the witness": witness})


def outputs_of(catalog: Path, where: str, key: Path | None, force: bool, witness: Path | None = None) -> Outputs:
    """Returns the writer of output files for a command on this catalog and ledger."""
    from dither.catalog import file as catalog_file

    sources = {name: str(table.source) for name, table in catalog_file.read(catalog).tables.items()}
    return Outputs(force, protected(sources, {"the catalog": catalog, **ledger_files(where, key, witness)}))


def key_file(where: str, key: Path | None) -> Path | None:
    """Returns the key file, if named. Refuses a ledger on a server without one: there is no folder to look in."""
    from dither.ledger import opening

    if key is None and opening.is_address(where):
        raise ArgumentError(
            "A ledger on a server needs the curator's key file named.",
            fix=Fix("add {key}, or set DITHER_KEY.", key=Shell("--key survey.key")),
        )
    return key


@contextmanager
def open_curator(
    catalog: Path,
    where: str,
    key: Path | None,
    analyst: str | None,
    progress: Callable[[float], None] | None = None,
    witness: Path | None = None,
) -> Iterator[Curator]:
    """Opens a curator for one command. Only `init` creates a ledger: a misspelt address must not start a new budget."""
    from dither import curator

    rest: dict[str, Any] = {"analyst": analyst, "progress": progress, "witness": witness}
    with warnings_as_notes(), curator.open(catalog, where, key=key_file(where, key), **rest) as survey:
        yield survey


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Prints warnings for the curator as notes, without the line of code that raised them."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", DitherWarning)
        shown = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, DitherWarning):
                note(f"Warning: {message}", style="yellow")
            else:
                shown(message, category, *rest, **more)

        warnings.showwarning = show
        yield


def question_text(question: str | None, file: str | None) -> str | list[str]:
    """Returns the question's text (from stdin if it is `-`), or the questions of a file."""
    if question is None and file is None:
        raise typer.BadParameter("Missing argument 'QUESTION': write a question in SQL, or name a file with --file.")
    if question is not None and file is not None:
        raise ArgumentError("One question and a file of questions do not go together.", fix="leave one of the two out.")
    if file is None:
        return sys.stdin.read() if question == "-" else str(question)
    from dither.query.sql.gate import statements

    try:
        found = statements(sys.stdin.read() if file == "-" else Path(file).read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        raise ArgumentError(f"{file} cannot be read as text.", fix="name a file of questions in UTF-8.") from None
    if not found:
        raise ArgumentError(f"{file} has no questions.", fix="write SELECT statements, separated by semicolons.")
    return found


def weight_list(weights: str | None) -> list[str] | None:
    """Returns the weights of the questions of a file."""
    return None if weights is None else [each.strip() for each in weights.split(",")]
