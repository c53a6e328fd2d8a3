from elmo_scratch.terminal import closing_lines, counted, duration


def test_a_command_closes_with_results_places_and_steps() -> None:
    lines = closing_lines(["accuracy 91.2%"], {"model": "x.tar.gz"}, ["look x", "use x"])
    assert lines == [
        "",
        "accuracy 91.2%",
        "",
        "model        x.tar.gz",
        "next         look x",
        "             use x",
    ]
    assert closing_lines(["12 sentences"], {}) == ["", "12 sentences"]


def test_durations_are_seconds_or_clocks() -> None:
    assert [duration(seconds) for seconds in (0.04, 59.94, 59.96, 3723.4)] == [
        "0.0 s",
        "59.9 s",
        "0:01:00",
        "1:02:03",
    ]


def test_counts_have_thousands_and_plurals() -> None:
    assert [counted(number, "token") for number in (0, 1, 12345)] == [
        "0 tokens",
        "1 token",
        "12,345 tokens",
    ]
