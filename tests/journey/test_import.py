"""`import dither` is quick because names are loaded on first use; users must not notice."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import pickle
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest

import dither as dt

SOURCE = Path(dt.__file__)
HEAVY = ("duckdb", "sqlglot", "flint", "numpy", "pyarrow")
LOADED = f"print(*sorted(set(sys.modules) & set({HEAVY})))"


def fresh(code: str) -> str:
    """Runs the code in a new interpreter and returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# --- what is loaded when ----------------------------------------------------------------------------------------


def test_importing_dither_loads_nothing_heavy() -> None:
    assert fresh(f"import dither\nprint(dither.__version__, end='')\n{LOADED}") == dt.__version__


def test_that_check_can_fail() -> None:
    assert set(fresh(f"import dither\ndither.open\n{LOADED}").split()) == set(HEAVY)


def test_importing_dither_loads_no_other_file_of_ours() -> None:
    assert fresh("import dither\nprint(*(name for name in sys.modules if name.startswith('dither')))") == "dither"


def test_noise_alone_loads_no_database_and_no_parser() -> None:
    assert fresh(f"import dither as dt\ndt.Geometric(epsilon=1, sensitivity=1).release(1)\n{LOADED}") == "flint numpy"


def test_a_declaration_and_an_error_load_nothing_heavy() -> None:
    assert fresh(f"import dither as dt\ndt.between, dt.DitherError\n{LOADED}") == ""


def test_the_command_lines_help_loads_nothing_heavy() -> None:
    run = "sys.argv = ['dither', '--help']\nfrom dither.cli import main\ntry:\n    main()\nexcept SystemExit:\n"
    shown = fresh(f"{run}    print('loaded:', end=' ')\n    {LOADED}").splitlines()
    assert any("quote" in line for line in shown)
    assert shown[-1] == "loaded:"


# --- the names --------------------------------------------------------------------------------------------------


def stated() -> tuple[dict[str, str], dict[str, str], list[str]]:
    """The three lists as they are written: the imports for type checkers, the table, `__all__`."""
    static: dict[str, str] = {}
    table: dict[str, str] = {}
    public: list[str] = []
    for node in ast.parse(SOURCE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for line in node.body:
                assert isinstance(line, ast.ImportFrom)
                static |= {alias.asname or alias.name: str(line.module) for alias in line.names}
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "_HOMES":
            homes = ast.literal_eval(node.value) if node.value else {}
            assert sum(map(len, homes.values())) == len({name for names in homes.values() for name in names})
            table = {name: home for home, names in homes.items() for name in names}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            public = ast.literal_eval(node.value)
    return static, table, public


def test_the_three_lists_of_public_names_agree() -> None:
    static, table, public = stated()
    assert len(public) > 50
    assert static == table
    assert sorted(table) == sorted(public)
    assert len(set(public)) == len(public)


@pytest.mark.parametrize("name", dt.__all__)
def test_a_public_name_is_the_object_of_its_home(name: str) -> None:
    home = stated()[1][name]
    found = getattr(dt, name)
    if inspect.ismodule(found):
        assert found is importlib.import_module(f"{home}.{name}")
    else:
        assert found is getattr(importlib.import_module(home), name)
    assert vars(dt)[name] is found  # kept: the second look is an ordinary one


def test_a_name_is_loaded_once() -> None:
    code = "import dither\nbefore = 'Pure' in vars(dither)\nfirst = dither.Pure\nprint(before, vars(dither)['Pure'] is first)"
    assert fresh(code) == "False True"


def test_dir_lists_every_public_name_and_no_helper() -> None:
    assert set(dt.__all__) | {"__version__", "__all__", "__doc__"} <= set(dir(dt))
    assert [name for name in dir(dt) if name not in dt.__all__ and not name.startswith("__")] == []
    assert fresh("import dither\nbefore = dir(dither)\nfrom dither import *\nprint(before == dir(dither))") == "True"


def test_an_unknown_name_says_where_to_look() -> None:
    with pytest.raises(
        AttributeError, match=r"no public name 'Geometic'\. dir\(dither\) lists .* import dither\.plots"
    ) as caught:
        dt.Geometic  # type: ignore[attr-defined]  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("Geometic", dt)  # from these Python tells which name was meant
    with pytest.raises(ImportError, match="Geometic"):
        exec("from dither import Geometic")
    assert not hasattr(dt, "Geometic")


# --- what people do with a package ------------------------------------------------------------------------------


def test_star_import_brings_exactly_the_public_names() -> None:
    code = "space = {}\nexec('from dither import *', space)\nspace.pop('__builtins__')\nimport dither\n"
    assert fresh(code + "print(sorted(space) == sorted(dither.__all__))") == "True"


@pytest.mark.parametrize("module", ["curator", "demo", "plots", "mechanisms", "privacy.proof", "cli"])
def test_modules_are_imported_by_their_own_names(module: str) -> None:
    last = module.split(".")[-1]
    parent = ".".join(["dither", *module.split(".")[:-1]])
    code = f"import dither.{module}\nfrom {parent} import {last}\nprint({last} is sys.modules['dither.{module}'])"
    assert fresh(code) == "True"


def test_public_objects_can_be_pickled_and_read_in_another_process() -> None:
    things = (dt.Geometric(epsilon=1, sensitivity=2), dt.open, dt.Pure(1), dt.Geometric, dt.between(0, 10))
    assert pickle.loads(pickle.dumps(things)) == things
    written = pickle.dumps(things[0]).hex()
    assert fresh(f"import pickle\nprint(pickle.loads(bytes.fromhex('{written}')))") == str(things[0])


def test_help_and_doctest_see_the_package() -> None:
    text = pydoc.plain(pydoc.render_doc(dt))
    for name in ("class Geometric", "class Curator", "open(catalog", "verify("):
        assert name in text
    assert doctest.testmod(dt).failed == 0


def test_threads_that_meet_at_the_first_use_get_the_same_objects() -> None:
    code = """
import threading, dither
sys.setswitchinterval(1e-6)
start, seen, failed = threading.Barrier(6), [], []
def use(turn):
    names = dither.__all__[turn * 9:] + dither.__all__[:turn * 9]
    start.wait()
    try:
        seen.append({name: id(getattr(dither, name)) for name in names})
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=use, args=(turn,)) for turn in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(failed, len(seen), all(one == seen[0] for one in seen))
"""
    assert fresh(code) == "[] 6 True"


def test_importing_the_curator_first_leaves_no_package_half_loaded_for_threads() -> None:
    """A package that loads its own files can be entered half way; once the curator is there, all of these are whole."""
    files = [path for path in SOURCE.parent.rglob("*/__init__.py") if "\nfrom dither." in path.read_text(encoding="utf-8")]
    names = [".".join(["dither", *path.parent.relative_to(SOURCE.parent).parts]) for path in files]
    names = [
        name for name in names if name.split(".")[1] not in ("cli", "audit", "server")
    ]  # above the curator, no homes of public names
    assert "dither.mechanisms" in names
    assert fresh(f"import dither.curator\nprint(*(name for name in {names} if name not in sys.modules))") == ""
