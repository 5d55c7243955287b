"""A server whose ledger has a new key: it refuses before it charges, and clients follow what the key they know has signed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import dither as dt
from dither.client.known import Known, Seen, shown_keys
from dither.ledger import rotation
from dither.ledger.receipts import Key, rotation_message
from dither.ledger.records import START, Entry, Rotated
from server.serving import BY_WARD, COUNT, Running, Service, serving

LEDGER = "0" * 32


def joined(running: Running, folder: Path, **more: object) -> dt.Remote:
    """Connects as if every server of a test had the same address."""
    return dt.connect(f"http://127.0.0.1:{running.port}", running.tokens["ada"], known=folder / "known.json", **more)  # type: ignore[arg-type]


def moved(folder: Path, before: Running, after: Running) -> None:
    """Has the client's file know the new address: the same server, started again on another port."""
    path = folder / "known.json"
    path.write_text(path.read_text().replace(f":{before.port}", f":{after.port}"))


@pytest.fixture
def rotated(service: Service, tmp_path: Path) -> Iterator[tuple[Running, dt.Remote]]:
    """A server that was restarted after a rotation, and a client that had connected, asked, and kept its object."""
    with serving(service) as before:
        remote = joined(before, tmp_path)
        remote.ask(COUNT, epsilon="0.1")
    rotation.rotate(service.ledger, None, "cora")
    with serving(service) as after:
        moved(tmp_path, before, after)
        remote.transport = replace(remote.transport, origin=f"http://127.0.0.1:{after.port}")
        yield after, remote


def test_a_server_with_the_old_key_refuses_before_it_charges(running: Running, service: Service, tmp_path: Path) -> None:
    remote = joined(running, tmp_path)
    remote.ask(COUNT, epsilon="0.1")
    assert running.get("/readyz").status == 200
    rotation.rotate(service.ledger, None, "cora")
    reply = running.ask("ada", BY_WARD, "0.1")
    assert (reply.status, reply.json["code"], reply.json["charged"]) == (503, "ledger", "nothing")
    assert "restart" in json.dumps(reply.json["fix"])
    assert running.spent() == "1/10"
    assert running.get("/readyz").status == 503
    assert remote.quote(BY_WARD, epsilon="0.1").epsilon
    assert running.get("/v1/verify", "otto").json["ok"]


def test_a_client_follows_the_rotation_that_its_key_signed(rotated: tuple[Running, dt.Remote], tmp_path: Path) -> None:
    after, _ = rotated
    old = Known(tmp_path / "known.json").find(f"http://127.0.0.1:{after.port}")
    again = joined(after, tmp_path)
    new = Known(tmp_path / "known.json").find(f"http://127.0.0.1:{after.port}")
    assert old is not None
    assert new is not None
    assert old.public_key != new.public_key == after.desk.survey.ledger.public_key
    assert again.ask(COUNT, epsilon="0.1").replayed  # its receipt was signed with the old key
    assert not again.ask(BY_WARD, epsilon="0.1").replayed
    joined(after, tmp_path, public_key=old.public_key)  # the curator's word of last year still leads here


def test_a_client_that_is_open_follows_too(rotated: tuple[Running, dt.Remote]) -> None:
    after, remote = rotated
    assert not remote.ask(BY_WARD, epsilon="0.1").replayed
    assert remote.seen.public_key == after.desk.survey.ledger.public_key


def test_a_new_client_believes_old_receipts_through_the_rotation(rotated: tuple[Running, dt.Remote], tmp_path: Path) -> None:
    after, _ = rotated
    assert joined(after, tmp_path / "elsewhere").ask(COUNT, epsilon="0.1").replayed


def test_a_client_that_knows_a_later_key_refuses_a_server_before_the_rotation(service: Service, tmp_path: Path) -> None:
    with serving(service) as before:
        before.ask("ben", COUNT)
    copy = service.ledger.read_bytes()
    made = rotation.rotate(service.ledger, None, "cora")
    with serving(service) as after:
        joined(after, tmp_path)
    service.ledger.write_bytes(copy)
    made.retired.replace(Path(f"{service.ledger}.key"))
    with serving(service) as back:
        moved(tmp_path, after, back)
        with pytest.raises(dt.LedgerError, match=r"older copy|another key"):
            joined(back, tmp_path)


def test_a_server_that_shows_no_rotation_is_refused(
    rotated: tuple[Running, dt.Remote], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twin: the same server, the same keys, without the entry that the old key signed."""
    after, remote = rotated
    with monkeypatch.context() as patch:
        patch.setattr(type(after.desk.survey.ledger), "rotations", lambda _: [])
        with pytest.raises(dt.LedgerError, match="did not sign its rotation"):
            joined(after, tmp_path)
        with pytest.raises(dt.LedgerError, match="did not sign its rotation") as error:
            remote.ask(BY_WARD, epsilon="0.1")
        assert "the price" in error.value.charged
    joined(after, tmp_path)


def test_a_page_shows_a_receipt_of_the_old_key_as_right(rotated: tuple[Running, dt.Remote]) -> None:
    after, remote = rotated
    entry = remote.ask(COUNT, epsilon="0.1").receipt.body["entry"]["number"]
    page = after.get(f"/receipts/{entry}", "ada").body.decode()
    assert after.desk.survey.ledger.keys().terms[0][1] in page


# --- what a lying server may show -------------------------------------------------------------------------------


def shown(old: Key, new: Key, by_old: Key | None, by_new: Key | None, ledger: str = LEDGER) -> dict[str, str]:
    """Returns a rotation as /v1/key shows it, signed by these keys."""
    record = Rotated(ledger, old.public, new.public, "c" * 64, "cora", "")
    entry = Entry(7, START, "0" * 32, "2026-11-15T12:00:00.000000Z", record)
    signed = [key.sign(rotation_message(entry.hash)) if key else "0" * 128 for key in (by_old, by_new)]
    return {"body": entry.body, "signature": " ".join(signed)}


def keys_of(*rotations: object, key: Key) -> list[str]:
    return [each for _, each in shown_keys("here", Seen(LEDGER, key.public, 9, "a" * 64), list(rotations)).terms]


def test_rotations_are_followed_only_as_far_as_they_are_signed() -> None:
    old, new, stranger = Key.new(), Key.new(), Key.new()
    assert keys_of(shown(old, new, old, new), key=new) == [old.public, new.public]
    wrong = [
        (shown(old, new, None, new), new),
        (shown(old, new, old, None), new),
        (shown(old, new, stranger, new), new),
        (shown(old, stranger, stranger, stranger), stranger),
        (shown(old, new, old, new, "1" * 32), new),
        (shown(old, new, old, new), stranger),
        ({"body": "{}", "signature": ""}, new),
        ({"body": shown(old, new, old, new)["body"].replace("cora", "carl"), "signature": ""}, new),
        ("text", new),
    ]
    for rotation_, key in wrong:
        with pytest.raises(dt.LedgerError, match="not signed by the old key"):
            keys_of(rotation_, key=key)


def test_a_stranger_who_makes_a_chain_of_his_own_does_not_reach_the_known_key(
    rotated: tuple[Running, dt.Remote], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after, _ = rotated
    origin, path = f"http://127.0.0.1:{after.port}", tmp_path / "known.json"
    seen = Known(path).find(origin)
    assert seen is not None
    mine, yours = Key.new(), Key.new()
    chain = shown(mine, yours, mine, yours, seen.ledger)
    ledger = type(after.desk.survey.ledger)
    monkeypatch.setattr(ledger, "rotations", lambda _: [(chain["body"], chain["signature"])])
    monkeypatch.setattr(ledger, "public_key", property(lambda _: yours.public))
    with pytest.raises(dt.LedgerError, match="did not sign its rotation"):
        joined(after, tmp_path)
    assert Known(path).find(origin) == seen


def test_a_client_that_was_open_before_does_not_bring_the_old_key_back(
    rotated: tuple[Running, dt.Remote], tmp_path: Path
) -> None:
    after, remote = rotated
    origin, known = f"http://127.0.0.1:{after.port}", Known(tmp_path / "known.json")
    joined(after, tmp_path)  # another process follows the rotation
    assert remote.ask(COUNT, epsilon="0.1").replayed  # signed with the old key, and right
    found = known.find(origin)
    assert found is not None
    assert found.public_key == after.desk.survey.ledger.public_key


def test_naming_an_earlier_key_does_not_let_its_thief_in(
    rotated: tuple[Running, dt.Remote], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thief of the old key shows the ledger as if it had never been rotated, with the head that the client asks for."""
    after, remote = rotated
    old, ledger = remote.seen.public_key, after.desk.survey.ledger
    new = ledger.public_key
    joined(after, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(type(ledger), "rotations", lambda _: [])
        patch.setattr(type(ledger), "public_key", old)
        with pytest.raises(dt.LedgerError, match="another key than before"):
            joined(after, tmp_path, public_key=old)
        joined(after, tmp_path / "new", public_key=old)  # twin: a client that has not followed cannot know
    joined(after, tmp_path, public_key=old)  # the curator's word of last year still leads to the ledger itself
    joined(after, tmp_path, public_key=new)
