"""The sizes and dictionaries of a model of ELMoForManyLangs, which a task's archive keeps."""

from os import PathLike
from typing import NamedTuple, Optional, Union

from elmo_scratch.interop.archives.sidecar import (
    archived_path,
    keep_in_archive,
    kept_in_archive,
    reading_kept,
)
from elmo_scratch.interop.many_langs.dictionaries import (
    BEGIN_SENTENCE,
    CHARACTER_MARKS,
    END_SENTENCE,
    PADDING,
    WORD_MARKS,
    DictionaryWordIndexer,
    kept_dictionary,
)
from elmo_scratch.interop.many_langs.settings import ManyLangsSettings, kept_settings
from elmo_scratch.modules import BiLm
from elmo_scratch.modules.token_encoders import CharWordEncoder
from elmo_scratch.modules.token_encoders.char_word_encoder import CharacterSettings, WordSettings

SIDECAR = "-many-langs"


class ManyLangsBlueprint(NamedTuple):
    """What it takes to build a biLM of ELMoForManyLangs, and to make its ids."""

    settings: ManyLangsSettings
    word_indexer: DictionaryWordIndexer

    def build(self, state: str) -> BiLm:
        """The biLM with random weights; `state` as in `BiLm`."""
        words: Optional[WordSettings] = None
        characters: Optional[CharacterSettings] = None
        if self.word_indexer.words is not None:
            words = WordSettings(max(self.word_indexer.words.values()), self.settings.word_dim)
        if self.word_indexer.characters is not None and self.settings.cnn is not None:
            characters = CharacterSettings(
                max(self.word_indexer.characters.values()),
                self.settings.cnn.char_dim,
                self.settings.cnn.filters,
                self.settings.cnn.n_highway,
                self.settings.cnn.activation,
                self.word_indexer.characters[PADDING],
            )
        encoder = CharWordEncoder(
            dim=self.settings.projection_dim,
            words=words,
            characters=characters,
            begin=self.word_indexer.ids_of(BEGIN_SENTENCE),
            end=self.word_indexer.ids_of(END_SENTENCE),
        )
        return BiLm(
            token_encoder=encoder,
            cell_size=self.settings.dim,
            num_layers=self.settings.n_layers,
            cell_clip=self.settings.cell_clip,
            projection_clip=self.settings.proj_clip,
            state=state,
        )

    def write(self, serialization_dir: Union[str, PathLike], folder: str) -> None:
        """
        Writes the blueprint to where AllenNLP packs it into the archive of the training. `folder`
        is the model folder, and `read` finds the blueprint by it.
        """
        kept = kept_in_archive(serialization_dir, SIDECAR) or {}
        kept[folder] = {
            "settings": self.settings._asdict(),
            "words": self.word_indexer.words,
            "characters": self.word_indexer.characters,
        }
        keep_in_archive(serialization_dir, SIDECAR, kept)

    @classmethod
    def read(
        cls, serialization_dir: Union[str, PathLike], folder: str
    ) -> Optional["ManyLangsBlueprint"]:
        """
        Reads the blueprint that `write` stored in a training's folder, or in its unpacked archive;
        `None` if there is none. Raises `ConfigurationError` if it is damaged.
        """
        with reading_kept(serialization_dir, SIDECAR):
            plan = (kept_in_archive(serialization_dir, SIDECAR) or {}).get(folder)
            if plan is None:
                return None
            path = archived_path(serialization_dir, SIDECAR)
            settings = kept_settings(str(path), plan["settings"])
            words = kept_dictionary(plan["words"], WORD_MARKS)
            characters = kept_dictionary(plan["characters"], CHARACTER_MARKS)
            if (words is None, characters is None) != (
                settings.word_dim == 0,
                settings.cnn is None,
            ):
                raise ValueError("its dictionaries and its sizes are of different models")
        indexer = DictionaryWordIndexer(words, characters, settings.max_characters)
        return cls(settings, indexer)
