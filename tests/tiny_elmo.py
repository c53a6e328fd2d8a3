"""Official files of tiny biLMs with random weights, read by this package and by AllenNLP."""

from pathlib import Path
from typing import Any, List, NamedTuple, Optional, Sequence

import torch
from allennlp.modules.elmo import Elmo as AllenNlpElmo

from elmo_scratch.embedders import Elmo
from elmo_scratch.interop.official import build_bilm, write_official_bilm
from elmo_scratch.interop.official.options import CharCnnOptions, LstmOptions, Options

WIDTH = 32
"""Of a token's vector."""

NUM_LAYERS = 3

OPTIONS = Options(
    LstmOptions(
        dim=24,
        projection_dim=WIDTH // 2,
        n_layers=NUM_LAYERS - 1,
        cell_clip=1.5,
        proj_clip=0.8,
        use_skip_connections=True,
    ),
    CharCnnOptions(
        embedding_dim=4,
        filters=((1, 4), (2, 8), (3, 16)),
        n_highway=2,
        activation="relu",
        max_characters_per_token=50,
    ),
)

SENTENCES = [
    ["The", "sentence", "."],
    ["ELMo", "helps", "disambiguate", "ELMo", "from", "Elmo", "."],
]

BATCHES: List[List[List[str]]] = [
    [["The", "bank", "raised", "rates", "."], ["They", "sat"], ["naïve", "café", "鶴"]],
    [["a"], ["The", "river", "bank", "."], [], ["<S>", "🦩", "", "x" * 60], ["one", "two"]],
    [["And", "so", "it", "went", "on", "."], ["The", "end"]],
    [[], ["She", "rates", "it"], ["The"], ["they", "sat", "on", "the", "bank"], ["a", "b", "c"]],
]
"""Of 3, 5, 2 and 5 sentences, some of them empty."""


class OfficialFiles(NamedTuple):
    """The two files of a biLM."""

    options: str
    weights: str

    def ours(self, num_output_representations: int = 1, **settings: Any) -> Any:
        """An `Elmo` of this package, in evaluation mode."""
        return Elmo(self.options, self.weights, num_output_representations, **settings).eval()

    def theirs(self, num_output_representations: int = 1, **settings: Any) -> Any:
        """An `Elmo` of AllenNLP, in evaluation mode."""
        return AllenNlpElmo(*self, num_output_representations, **settings).eval()


def write_files(
    folder: Path, options: Options = OPTIONS, num_words: Optional[int] = None, seed: int = 13
) -> OfficialFiles:
    """A biLM's files, with weights large enough that clips, biases and all layers matter."""
    bilm = build_bilm(options, num_words, state="reset", matmul_dtype="float32")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in bilm.parameters():
            weight.normal_(std=0.4, generator=generator)
    write_official_bilm(bilm, folder)
    return OfficialFiles(str(folder / "options.json"), str(folder / "weights.hdf5"))


def vocabulary_of(batches: Sequence[Sequence[Sequence[str]]]) -> List[str]:
    """All words of batches, each once, as a vocabulary of AllenNLP numbers them."""
    words = [word for batch in batches for sentence in batch for word in sentence]
    return ["@@PADDING@@", "@@UNKNOWN@@", *dict.fromkeys(words)]


def word_ids(batch: Sequence[Sequence[str]], vocabulary: Sequence[str]) -> torch.Tensor:
    """Places in a vocabulary, 0 where a sentence has ended and 1 for an unknown word."""
    ids = torch.zeros(len(batch), max(map(len, batch)), dtype=torch.long)
    for row, sentence in zip(ids, batch):
        for place, word in enumerate(sentence):
            row[place] = vocabulary.index(word) if word in vocabulary else 1
    return ids
