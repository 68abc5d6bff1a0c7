"""The publisher's buffer and the file behind it: order, bounds, and what a crash leaves."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tristore.errors import StartRefused
from tristore.events.sdk.buffer import Buffer, packed
from tristore.events.sdk.safekeeping import Safekeeping
from tristore.events.sdk.spool import Spool, encode, read

# An event is one line of JSON: any bytes but a line break.
BODIES = st.lists(st.binary(min_size=1, max_size=40).filter(lambda b: b"\n" not in b), max_size=12)


def test_a_buffer_gives_out_in_order_and_counts_what_is_gone() -> None:
    buffer = Buffer(3, 100)
    assert buffer.append([b"a", b"bb"]) == 2
    assert buffer.fits([b"c"]) and not buffer.fits([b"c", b"d"])
    assert buffer.first(1, 100) == [b"a"]
    buffer.drop(1)
    assert (buffer.gone, buffer.added, buffer.size, len(buffer)) == (1, 2, 2, 1)
    buffer.append([b"ccc"])
    assert buffer.after(2) == [b"ccc"] and buffer.after(0) == [b"bb", b"ccc"]


def test_an_empty_buffer_takes_an_event_larger_than_its_bound() -> None:
    buffer = Buffer(10, 4)
    assert buffer.fits([b"larger"])
    buffer.append([b"larger"])
    assert not buffer.fits([b"x"])


@given(BODIES, st.integers(1, 5), st.integers(1, 60))
def test_packing_keeps_order_and_bounds(bodies: list[bytes], events: int, size: int) -> None:
    groups = list(packed(bodies, events, size))
    assert [body for group in groups for body in group] == bodies
    for group in groups:
        assert 0 < len(group) <= events
        assert len(group) == 1 or sum(map(len, group)) <= size


@given(BODIES, BODIES, st.integers(0, 2000))
def test_a_file_cut_anywhere_gives_back_every_whole_event(
    first: list[bytes], second: list[bytes], cut: int
) -> None:
    """A crash tears the end of the file; what was written before it, and what a later process
    adds after it, is found again in order."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "unsent"
        path.write_bytes(encode(first)[:cut])
        whole = [b for i, b in enumerate(first) if len(encode(first[: i + 1])) <= cut]
        assert opened(path, second) == whole
        assert opened(path) == [*whole, *second]


@given(BODIES.filter(bool), st.data())
def test_a_damaged_line_costs_that_event_alone(bodies: list[bytes], data: st.DataObject) -> None:
    lines = [encode([body]) for body in bodies]
    index = data.draw(st.integers(0, len(lines) - 1))
    lines[index] = b"0" * (len(lines[index]) - 1) + b"\n"
    expected = [body for place, body in enumerate(bodies) if place != index]
    assert read(b"".join(lines)) == (expected, 1)


@given(st.lists(st.one_of(BODIES, st.integers(1, 6), st.just("outage"), st.just("crash"))))
def test_whatever_happens_no_kept_event_is_missing_after_a_crash(steps: list[object]) -> None:
    """Events come, are kept, are sent, outages begin, processes die: the next process finds all
    that was kept and not sent, in order; what it finds beyond that was sent before."""
    with TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder) / "unsent", steps))


async def play(path: Path, steps: list[object]) -> None:
    buffer = Buffer(10**6, 10**9)
    kept = Safekeeping(buffer, path)
    await kept.open()
    unsent: list[bytes] = []
    for step in steps:
        if isinstance(step, list):
            number = buffer.append(step)
            await kept.secure(number)
            unsent += step
        elif isinstance(step, int):
            count = min(step, len(buffer))
            buffer.drop(count)
            del unsent[:count]
            await kept.forget()
        elif step == "outage":
            kept.start_afresh()
        else:
            kept._spool.close()  # type: ignore[union-attr]
            buffer = Buffer(10**6, 10**9)
            kept = Safekeeping(buffer, path)
            await kept.open()
            found = buffer.after(0)
            assert found[len(found) - len(unsent) :] == unsent
            unsent = found
    await kept.close()


def test_two_publishers_cannot_share_a_file(tmp_path: Path) -> None:
    first, second = Spool(tmp_path / "unsent"), Spool(tmp_path / "unsent")
    first.open()
    with pytest.raises(StartRefused, match="another publisher"):
        second.open()
    first.close()
    second.open()
    second.close()


def opened(path: Path, more: list[bytes] | None = None) -> list[bytes]:
    spool = Spool(path)
    found = spool.open()
    spool.append(more or [])
    spool.close()
    return found
