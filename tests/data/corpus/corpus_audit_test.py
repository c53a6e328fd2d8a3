from pathlib import Path

from elmo_scratch.data.corpus import CorpusAudit

AUDIT = CorpusAudit(
    tokens=12345,
    sentences=678,
    distinct_words=90,
    cut_share=0.00125,
    duplicate_lines=4,
    blank_lines=5,
    bytes_read=67890,
    empty_shards=["ä.txt", "b.gz"],
)


def test_what_is_written_is_read_again_but_for_names(tmp_path: Path) -> None:
    AUDIT.write(tmp_path / "audit.json")
    assert CorpusAudit.read(tmp_path / "audit.json") == AUDIT._replace(empty_shards=())


def test_a_log_gets_one_line() -> None:
    assert AUDIT.describe() == (
        "12,345 tokens in 678 sentences; 90 distinct words; 0.1250% of the tokens cut at 50 "
        "characters; 4 duplicate lines; 5 blank lines; 67,890 bytes read; empty: ä.txt, b.gz"
    )


def test_what_a_vocabulary_lacks_is_told_where_there_is_one() -> None:
    told = AUDIT._replace(unknown_share=0.0625).describe()
    assert "; 6.2500% of the tokens out of vocabulary; empty" in told


def test_nothing_is_said_about_empty_shards_where_there_are_none() -> None:
    assert "empty" not in AUDIT._replace(empty_shards=[]).describe()
