import pytest

from elmo_scratch.kernels.lstm.cuda_graphs import SWITCH, recording_devices


@pytest.mark.parametrize("value, devices", [(None, ("cuda",)), ("1", ("cuda",)), ("0", ())])
def test_the_environment_switches_it_off(
    value: str, devices: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    if value is not None:
        monkeypatch.setenv(SWITCH, value)
    assert recording_devices() == devices
