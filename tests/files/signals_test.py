import signal

import pytest

from elmo_scratch.files.signals import Terminated, first_interruption_waits


def test_it_interrupts_and_knows_its_signal() -> None:
    try:
        raise Terminated(signal.SIGTERM)
    except Exception:
        raise AssertionError("what reads files would take it for damage") from None
    except KeyboardInterrupt as interruption:
        assert isinstance(interruption, Terminated)
        assert interruption.number == signal.SIGTERM


def test_the_first_ctrl_c_waits_and_the_second_does_not(capsys: pytest.CaptureFixture) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), first_interruption_waits("wait") as has_come:
            assert not has_come()
            signal.raise_signal(signal.SIGINT)
            assert has_come()
            assert capsys.readouterr().err == "wait\n"
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with first_interruption_waits("wait") as has_come:
            signal.raise_signal(signal.SIGINT)
            assert not has_come()
    finally:
        signal.signal(signal.SIGINT, before)
