"""
The readers of files, each behind one door: whatever bytes a file holds, the answer is a value or a
`ConfigurationError` of one line that names the file or its folder.
"""

import bz2
import copy
import gzip
import io
import lzma
import shutil
import zipfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Sequence

import h5py
import numpy
from allennlp.commands.predict import _PredictManager
from allennlp.common.checks import ConfigurationError
from allennlp.predictors import Predictor

from elmo_scratch.data.corpus import PreparedCorpus, prepared_corpus
from elmo_scratch.data.corpus.shards import shard_blocks
from elmo_scratch.data.lines import text_lines
from elmo_scratch.data.readers import ag_news_rows
from elmo_scratch.data.vocabulary_file import read_vocabulary_file
from elmo_scratch.export import InputText
from elmo_scratch.export.parts import PartFolder
from elmo_scratch.integrations.spacy_component import ElmoComponent
from elmo_scratch.interop import LayerFile, read_bilm
from elmo_scratch.interop.many_langs import read_many_langs
from elmo_scratch.interop.official.files import read_official_bilm, read_official_options
from elmo_scratch.interop.softmax import read_official_softmax
from elmo_scratch.interop.static_vectors import read_static_vectors
from elmo_scratch.report import read_contents
from elmo_scratch.report.results import read_results
from elmo_scratch.search.sweep import read_sweep
from elmo_scratch.training import WholeCheckpointer
from tests import FIXTURES_ROOT, PROJECT_ROOT
from tests.tiny_archives import unpack

GOLDEN = PROJECT_ROOT / "tests" / "golden"
MANY_LANGS, MANY_LANGS_BOTH = (
    FIXTURES_ROOT / "elmo_for_many_langs" / name for name in ("words", "both")
)

FINDINGS = PROJECT_ROOT / "tests" / "fuzz" / "findings"
"""A folder for each target, of contents that were read wrongly once."""


Fill = Callable[[Path], object]
"""Puts files into an empty folder."""


class Target(NamedTuple):
    """
    A reader. `file` is the name of what it reads, within a folder, and `read` gets its path. `fill`
    puts the files beside it into that folder, and itself if one that is read well lies with them;
    `seeds` are more of such contents.
    """

    file: str
    read: Callable[[Path], object]
    seeds: Sequence[bytes] = ()
    fill: Fill = lambda folder: None

    def prepare(self, folder: Path) -> List[bytes]:
        """Fills a new folder, and returns contents of the file that are read well."""
        path = folder / self.file
        path.parent.mkdir(parents=True)
        self.fill(folder)
        return [*([path.read_bytes()] if path.exists() else []), *self.seeds]

    def check(self, folder: Path, content: bytes) -> None:
        """Reads the file with this content, and raises an error that no reader may raise."""
        path = folder / self.file
        path.write_bytes(content)
        try:
            self.read(path)
        except ConfigurationError as error:
            message = str(error.message)
            assert "\n" not in message, f"the error is not one line: {message}"
            assert str(folder) in message, f"the error doesn't name the file: {message}"


def _read_lines(path: Path) -> None:
    lines = [line.rstrip("\r\n") for line in text_lines(path)]
    text = "".join(shard_blocks(path))
    assert lines == text.removesuffix("\n").split("\n"), "two ways of reading differ"


def _read_sentences(path: Path) -> List[object]:
    return list(InputText(str(path), path).sentences())


def _read_layers(path: Path) -> None:
    with LayerFile(path) as file:
        file.check()
        for _, key in file.sentences():
            with suppress(KeyError):  # as `read` documents it
                file.read(key)


def _read_index(path: Path) -> None:
    """The content as the index of a file of two sentences."""
    layers = path.with_name("indexed.hdf5")
    content = path.read_bytes().partition(b"\0")[0]  # HDF5 ends a text there
    with h5py.File(layers, "w") as file:
        for key in ("0", "1"):
            file[key] = numpy.zeros((3, 2, 4), "float32")
        string = h5py.string_dtype()
        file.create_dataset("sentence_to_index", (1,), dtype=string)[0] = content
    with LayerFile(layers) as file:
        for tokens, key in file.token_sentences():
            file.read_tokens(key, len(tokens))


def _read_record(path: Path) -> int:
    return PartFolder(path.parent.with_suffix("")).num_done("sha256:0")


@lru_cache(maxsize=None)
def _predictor(archive: Path) -> Predictor:
    return Predictor.from_path(str(archive))


def _predicted(archive: Path) -> Callable[[Path], object]:
    """Answers the lines of a file as `allennlp predict` does, two at a time."""

    def read(path: Path) -> None:
        # `_PredictManager` changes the predictor that it gets.
        predictor = copy.copy(_predictor(archive))
        _PredictManager(predictor, str(path), None, 2, False, False).run()

    return read


def _read_state(path: Path) -> object:
    return PartFolder(path.parent.with_suffix("")).state_before(3)


def _copied(source: Path) -> Fill:
    return lambda folder: shutil.copytree(source, folder, dirs_exist_ok=True)


def _unpacked(source: Path) -> Fill:
    return lambda folder: unpack(source, folder)


def _read_model(path: Path) -> object:
    return read_bilm(path.parent if path.parent.name != "vocabulary" else path.parent.parent)


def _read_many_langs(path: Path) -> object:
    return read_many_langs(path.parent)


def _read_checkpoint(path: Path) -> object:
    return WholeCheckpointer(path.parent).load_checkpoint()


def _prepared(folder: Path) -> PreparedCorpus:
    """The corpus as another process would find it in a folder, or prepare it."""
    prepared_corpus._CHECKED.clear()
    return PreparedCorpus.of(GOLDEN / "texts" / "corpus.txt", cache_dir=str(folder))


def _read_corpus(path: Path) -> None:
    corpus = _prepared(path.parent.parent)
    words = [corpus.words[number] for number in corpus.tokens]
    assert words == CORPUS_WORDS, "other words are read than those of the text"


def _save_component(folder: Path) -> None:
    ElmoComponent("elmo", str(FOLDER)).to_disk(folder)


def _read_component(path: Path) -> object:
    return ElmoComponent("elmo", "nowhere").from_disk(path.parent).layers


def _zipped() -> bytes:
    """A zip file of official files."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name in ("options.json", "weights.hdf5"):
            file.writestr(name, (GOLDEN / "official" / name).read_bytes())
    return written.getvalue()


WORDS, CLASSIFIER = GOLDEN / "words" / "model.tar.gz", GOLDEN / "classifiers" / "words.tar.gz"
FOLDER, OFFICIAL, STOPPED = GOLDEN / "folders" / "words", GOLDEN / "official", GOLDEN / "stopped"
LAYERS = GOLDEN / "layers"
PARTS = "unfinished.hdf5.parts"
ASKED = [
    b'{"description": "Oil prices rose.", "title": "Oil"}\n{"description": "Goals"}\n',
    b'{"sentence": "the river"}\n{"words": ["the", "New York"]}\n',
]
TEXT = (FIXTURES_ROOT / "text" / "tour.txt").read_bytes()
PACKED = [pack(TEXT[:200]) for pack in (gzip.compress, bz2.compress, lzma.compress)]
NEWS = b"".join((FIXTURES_ROOT / "news" / "dev.csv").read_bytes().splitlines(True)[:9])
TREEBANK = (FIXTURES_ROOT / "tasks" / "ud" / "dev.conllu").read_bytes().partition(b"\n\n")[0]
STUDY = PROJECT_ROOT / "examples" / "ag_news_study" / "study.json"
CORPUS = "e64506d545a526011fb24e8b5c84272b"
"""The name of the folder of `corpus.txt`, prepared."""

CORPUS_WORDS = (GOLDEN / "texts" / "corpus.txt").read_text("utf-8").split()


def _report(path: Path) -> object:
    return read_contents([path.parent])


TARGETS: Dict[str, Target] = {
    "archive": Target("model.tar.gz", read_bilm, fill=_copied(GOLDEN / "words")),
    "archive_config": Target("config.json", _read_model, fill=_unpacked(WORDS)),
    "archive_vocabulary": Target("vocabulary/tokens.txt", _read_model, fill=_unpacked(WORDS)),
    "archive_weights": Target("weights.th", _read_model, fill=_unpacked(WORDS)),
    "checkpoint_model": Target(
        "model_state_e1_b2.th", _read_checkpoint, fill=_copied(STOPPED / "words")
    ),
    "checkpoint_training": Target(
        "training_state_e1_b2.th", _read_checkpoint, fill=_copied(STOPPED / "words")
    ),
    "conllu": Target("text.conllu", _read_sentences, [TREEBANK + b"\n\n"]),
    "corpus_checksums": Target(f"{CORPUS}/checksums.json", _read_corpus, fill=_prepared),
    "corpus_manifest": Target(f"{CORPUS}/manifest.json", _read_corpus, fill=_prepared),
    "corpus_tokens": Target(f"{CORPUS}/tokens.bin", _read_corpus, fill=_prepared),
    "folder_config": Target("config.json", _read_model, fill=_copied(FOLDER)),
    "folder_vocabulary": Target("vocab.txt", _read_model, fill=_copied(FOLDER)),
    "folder_weights": Target("model.safetensors", _read_model, fill=_copied(FOLDER)),
    "json_lines": Target("text.jsonl", _read_sentences, [b'{"tokens": ["New York", "sleeps"]}\n']),
    "layer_index": Target("index.json", _read_index, [b'{"the river": "0", "a bank": "1"}']),
    "layers": Target("words.hdf5", _read_layers, fill=_copied(LAYERS)),
    "many_langs_characters": Target("char.dic", _read_many_langs, fill=_copied(MANY_LANGS_BOTH)),
    "many_langs_config": Target("config.json", _read_many_langs, fill=_copied(MANY_LANGS)),
    "many_langs_sizes": Target("tiny.json", _read_many_langs, fill=_copied(MANY_LANGS)),
    "many_langs_weights": Target("encoder.pkl", _read_many_langs, fill=_copied(MANY_LANGS)),
    "many_langs_words": Target("word.dic", _read_many_langs, fill=_copied(MANY_LANGS)),
    "news": Target("news.csv", lambda path: list(ag_news_rows(path)), [NEWS]),
    "options": Target("options.json", read_official_options, fill=_copied(OFFICIAL)),
    "part_record": Target(f"{PARTS}/export.json", _read_record, fill=_copied(LAYERS)),
    "predict_news": Target("news.jsonl", _predicted(CLASSIFIER), ASKED[:1]),
    "predict_sentences": Target("sentences.jsonl", _predicted(WORDS), ASKED[1:]),
    "report_config": Target("config.json", _report, fill=_copied(STOPPED / "words")),
    "report_metrics": Target("metrics_epoch_0.json", _report, fill=_copied(STOPPED / "words")),
    "results": Target("study.json", read_results, [STUDY.read_bytes()]),
    "softmax": Target(
        "softmax_weights.hdf5",
        lambda path: read_official_softmax(path, num_words=303, dim=7),
        fill=_copied(FIXTURES_ROOT / "elmo" / "language_model"),
    ),
    "spacy_component": Target("model.json", _read_component, fill=_save_component),
    "state": Target(f"{PARTS}/000000000003.state.npz", _read_state, fill=_copied(LAYERS)),
    "sweep": Target("sweep.yaml", read_sweep, fill=_copied(GOLDEN / "search")),
    "text": Target("text.txt", _read_lines, [TEXT, *PACKED]),
    "vectors": Target("svd.txt", read_static_vectors, fill=_copied(GOLDEN / "vectors")),
    "vectors_binary": Target(
        "vectors.bin", read_static_vectors, [b"2 2\nthe \0\0\x80?\0\0\0@bank \0\0\0\xbf\0\0@@"]
    ),
    "vocabulary": Target(
        "vocab.txt", read_vocabulary_file, fill=_copied(GOLDEN / "exported" / "words")
    ),
    "weights": Target(
        "weights.hdf5",
        lambda path: read_official_bilm(path.with_name("options.json"), path),
        fill=_copied(OFFICIAL),
    ),
    "zip": Target("model.zip", read_bilm, [_zipped()]),
}
