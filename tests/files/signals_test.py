import signal

from elmo_scratch.files.signals import Terminated


def test_it_interrupts_and_knows_its_signal() -> None:
    try:
        raise Terminated(signal.SIGTERM)
    except Exception:
        raise AssertionError("what reads files would take it for damage") from None
    except KeyboardInterrupt as interruption:
        assert isinstance(interruption, Terminated)
        assert interruption.number == signal.SIGTERM
