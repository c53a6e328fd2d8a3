"""Exports the layers of texts and sentences to arrays and files."""

from elmo_scratch.export.elmo_embedder import ElmoEmbedder as ElmoEmbedder
from elmo_scratch.export.export import Engine as Engine
from elmo_scratch.export.export import OneProcess as OneProcess
from elmo_scratch.export.export import RayEngine as RayEngine
from elmo_scratch.export.export import check_settings as check_settings
from elmo_scratch.export.export import export_layers as export_layers
from elmo_scratch.export.model_source import ModelSource as ModelSource
from elmo_scratch.export.parts import join_shards as join_shards
from elmo_scratch.export.plan import ExportSettings as ExportSettings
from elmo_scratch.export.plan import Shard as Shard
from elmo_scratch.export.text import InputText as InputText

__all__ = [
    "ElmoEmbedder",
    "Engine",
    "ExportSettings",
    "InputText",
    "ModelSource",
    "OneProcess",
    "RayEngine",
    "Shard",
    "check_settings",
    "export_layers",
    "join_shards",
]
