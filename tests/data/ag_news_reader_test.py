from typing import List, Union

import pytest
from allennlp.common import Params
from allennlp.data import DatasetReader, Instance, Vocabulary
from allennlp.data.dataset_readers.dataset_reader import WorkerInfo
from allennlp.data.fields import LabelField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.data.tokenizers import WhitespaceTokenizer

from elmo_scratch.data import AgNewsReader
from elmo_scratch.data.readers import mended
from tests import FIXTURES_ROOT

DEV = FIXTURES_ROOT / "news" / "dev.csv"


def words_of(instance: Instance) -> List[str]:
    text = instance["text"]
    assert isinstance(text, TextField)
    return [str(token) for token in text.tokens]


def label_of(instance: Instance) -> Union[str, int]:
    label = instance["label"]
    assert isinstance(label, LabelField)
    return label.label


def test_a_row_becomes_the_words_of_its_description_and_its_class() -> None:
    first = next(iter(AgNewsReader().read(DEV)))
    assert words_of(first)[:6] == ["The", "people", "of", "the", "island", "voted"]
    assert words_of(first)[-2:] == ["result", "."]
    assert label_of(first) == "World"


def test_every_row_of_the_file_is_read_once_and_in_order() -> None:
    labels = [label_of(instance) for instance in AgNewsReader().read(DEV)]
    assert len(labels) == 80
    assert labels[:5] == ["World", "World", "Sci/Tech", "Sports", "Sports"]


def test_titles_come_first_where_they_are_wanted() -> None:
    reader = AgNewsReader(tokenizer=WhitespaceTokenizer(), use_title=True)
    assert words_of(reader.text_to_instance("c d", title="a b")) == ["a", "b", "c", "d"]
    first = next(iter(reader.read(DEV)))
    assert words_of(first)[:5] == ["Island", "Votes", "for", "Independence", "The"]


def test_titles_are_ignored_where_they_are_not_wanted() -> None:
    reader = AgNewsReader(tokenizer=WhitespaceTokenizer())
    assert words_of(reader.text_to_instance("c d", title="a b")) == ["c", "d"]


def test_tokens_after_the_maximum_are_dropped() -> None:
    reader = AgNewsReader(tokenizer=WhitespaceTokenizer(), use_title=True, max_tokens=3)
    assert words_of(reader.text_to_instance("c d", title="a b")) == ["a", "b", "c"]
    assert words_of(reader.text_to_instance("b", title="a")) == ["a", "b"]


def test_a_text_without_a_class_has_no_label() -> None:
    assert list(AgNewsReader().text_to_instance("Oil rose.").fields) == ["text"]


def test_a_text_may_be_empty() -> None:
    assert words_of(AgNewsReader().text_to_instance("")) == []


def test_words_get_their_ids_from_the_indexers_of_the_reader() -> None:
    reader = AgNewsReader(
        tokenizer=WhitespaceTokenizer(),
        token_indexers={"lower": SingleIdTokenIndexer(lowercase_tokens=True)},
    )
    instance = reader.text_to_instance("Oil oil", "Business")
    reader.apply_token_indexers(instance)
    vocab = Vocabulary.from_instances([instance])
    instance.index_fields(vocab)
    tensors = instance["text"].as_tensor(instance["text"].get_padding_lengths())
    oil = vocab.get_token_index("oil")
    assert oil > 1  # neither padding nor unknown
    assert tensors["lower"]["tokens"].tolist() == [oil, oil]


def test_a_config_finds_it_by_name() -> None:
    config = {"type": "ag_news", "tokenizer": {"type": "spacy_blank"}, "use_title": True}
    reader = DatasetReader.from_params(Params(config))
    assert isinstance(reader, AgNewsReader)
    words = words_of(reader.text_to_instance("Isn't.", title="It"))  # type: ignore[call-arg]
    assert words == ["It", "Is", "n't", "."]


def test_every_worker_reads_its_own_share_of_the_rows() -> None:
    rows = [words_of(instance) for instance in AgNewsReader().read(DEV)]
    for number in range(3):
        reader = AgNewsReader()
        reader._set_worker_info(WorkerInfo(num_workers=3, id=number))
        assert [words_of(instance) for instance in reader.read(DEV)] == rows[number::3]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("The bank #39;s river rose.", "The bank's river rose."),
        ("#39;It rose, #39; she said.\n#36;5", "'It rose,' she said.\n$5"),
        ("the bank#39;s (#151;)", "the bank's (\u2014)"),
        ("&lt;b&gt;Oil&lt;/b&gt; &amp; gas", "<b>Oil</b> & gas"),
        ("&amp;lt;p&amp;gt; &amp;amp;quot;x&amp;amp;quot;", '<p> "x"'),
        ("the  quot;best quot; of caf&eacute;s", 'the "best" of caf\u00e9s'),
        (
            "AT&T; item #5; R&D, &copy2 &no; # 39; lt;",
            "AT&T; item #5; R&D, &copy2 &no; # 39;<",
        ),
    ],
)
def test_what_is_left_of_html_is_mended(text: str, expected: str) -> None:
    assert mended(text) == expected


def test_texts_are_mended_only_where_that_is_asked_for() -> None:
    settings = {"type": "ag_news", "tokenizer": "whitespace", "use_title": True}
    for choice, words in ((True, ["It's", "the", "bank's", "&", "ours"]), (False, None)):
        reader = DatasetReader.from_params(Params({**settings, "mend_entities": choice}))
        assert isinstance(reader, AgNewsReader)
        found = words_of(reader.text_to_instance("the bank #39;s &amp;amp; ours", title="It&#39;s"))
        assert found == (words or ["It&#39;s", "the", "bank", "#39;s", "&amp;amp;", "ours"])
