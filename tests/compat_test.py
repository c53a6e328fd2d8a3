"""
Each help of `elmo_scratch_compat` is seen to work, and to be needed: where stock AllenNLP manages
without it, the test that says so fails, and the help can go.
"""

import errno
import gzip
import importlib
import io
import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type, Union

import numpy
import pytest
import torch
from allennlp.common import Params, Registrable
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model, load_archive
from allennlp.modules import Seq2SeqEncoder
from allennlp.modules.vision import ResnetBackbone
from allennlp.nn import Activation
from allennlp.training import GradientDescentTrainer, gradient_descent_trainer
from allennlp.training.optimizers import Optimizer

import elmo_scratch_compat
from elmo_scratch.modules.token_encoders import TokenEncoder
from elmo_scratch_compat import training
from elmo_scratch_compat.predictions import write_whole_file
from elmo_scratch_compat.training import (
    FOLDER_CAME_BACK,
    INTERFACE,
    interface_to,
    meet_on_one_network,
    replace_when_training_begins,
    share_processors,
)
from tests import PROJECT_ROOT
from tests.allennlp_behaviours import archive_with, names_in
from tests.tiny_archives import unpack

Outcomes = Dict[str, Any]

NOTHING_MORE: Mapping[str, str] = MappingProxyType({})
WITHOUT_HELP = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}

needs_no_torchvision = pytest.mark.skipif(
    find_spec("torchvision") is not None, reason="torchvision is installed here"
)


def run(
    *words: Union[str, Path],
    folder: Path,
    environment: Mapping[str, str] = NOTHING_MORE,
    check: bool = True,
) -> "subprocess.CompletedProcess[str]":
    """Runs a program of this Python environment in a folder."""
    inherited = {name: value for name, value in os.environ.items() if name not in WITHOUT_HELP}
    finished = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env={**inherited, "OMP_NUM_THREADS": "1", **environment},
        capture_output=True,
        text=True,
    )
    assert not check or finished.returncode == 0, finished.stderr
    return finished


def run_python(code: str, folder: Path, **options: Any) -> "subprocess.CompletedProcess[str]":
    """Runs lines of Python in a process of its own."""
    return run(sys.executable, "-c", code, folder=folder, **options)


def outcomes_in(folder: Path, environment: Mapping[str, str] = NOTHING_MORE) -> Outcomes:
    """What `allennlp_behaviours` finds, in a process of its own."""
    program = (sys.executable, "-m", "tests.allennlp_behaviours", folder)
    run(*program, folder=PROJECT_ROOT, environment=environment)
    return json.loads((folder / "outcomes.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def torchvision(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an empty package of that name, for `PYTHONPATH`."""
    folder = tmp_path_factory.mktemp("torchvision")
    (folder / "torchvision" / "ops").mkdir(parents=True)
    for module in ("__init__", "ops/__init__", "ops/boxes"):
        (folder / "torchvision" / f"{module}.py").touch()
    return folder


@pytest.fixture(scope="module")
def helped_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the behaviours of `helped` leave their files."""
    return tmp_path_factory.mktemp("helped")


@pytest.fixture(scope="module")
def helped(helped_folder: Path) -> Outcomes:
    """What AllenNLP does as it is installed here."""
    return outcomes_in(helped_folder)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory, torchvision: Path) -> Outcomes:
    """What it does without any help but a torchvision that can be imported."""
    folder = tmp_path_factory.mktemp("stock")
    return outcomes_in(folder, {"PYTHONPATH": str(torchvision), **WITHOUT_HELP})


@pytest.fixture(scope="module")
def archive(helped: Outcomes, helped_folder: Path) -> Path:
    """A good one, that a training has made."""
    return helped_folder / "states_of_a_cosine_training_load" / "run" / "model.tar.gz"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the temporary folders of this test are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_importing_torch_imports_no_allennlp(tmp_path: Path) -> None:
    run_python(
        "import torch, sys\n"
        "assert any(type(f).__name__ == '_HelpingFinder' for f in sys.meta_path)\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'allennlp', 'allennlp_models', 'elmo_scratch', 'nltk'}, loaded",
        tmp_path,
    )


def test_applying_twice_is_applying_once() -> None:
    finders, types = list(sys.meta_path), list(torch.serialization.get_safe_globals())
    elmo_scratch_compat.apply()
    assert sys.meta_path == finders
    assert torch.serialization.get_safe_globals() == types
    assert [type(finder).__name__ for finder in finders].count("_HelpingFinder") == 1


def test_there_are_such_modules_to_help() -> None:
    assert elmo_scratch_compat.HELP
    for name in elmo_scratch_compat.HELP:
        importlib.import_module(name)


ASKED_LATER = """
import sys, torch
from allennlp.common import util
print(sorted({"spacy", "transformers"} & set(sys.modules)))
"""

USED = """
from allennlp.common.checks import ConfigurationError
from allennlp.data import Token, Vocabulary
from allennlp.data.fields import TextField, text_field
from allennlp.data.token_indexers import SpacyTokenIndexer
from allennlp.data.tokenizers import SentenceSplitter, SpacyTokenizer

TextField([Token("It")], {})
print(text_field.SpacyToken, "spacy" in sys.modules)
tokens = list(util.spacy.blank("en")("It rains."))
print([token.text for token in tokens])
print(len(TextField(tokens, {})), isinstance(tokens[0], text_field.SpacyToken))
print(SpacyTokenIndexer().tokens_to_indices(tokens, Vocabulary())["tokens"][0].shape)
try:
    TextField(["It"], {})
except ConfigurationError:
    print("refused")
print([token.text for token in SpacyTokenizer().tokenize("It rains.")])
print(SentenceSplitter.by_name("spacy")(rule_based=True).split_sentences("It rains. It snows."))
print([token.text for token in SpacyTokenizer(split_on_spaces=True).tokenize("It rains.")])
import allennlp, spacy
print(util.spacy.load == spacy.load, allennlp.transformers.PreTrainedModel.__name__)
"""


def test_spacy_and_transformers_are_imported_by_who_uses_them(tmp_path: Path) -> None:
    finished = run_python(ASKED_LATER + USED, tmp_path)
    assert finished.stdout.splitlines() == [
        "[]",
        "<spacy.tokens.Token, imported when it is used> False",
        "['It', 'rains', '.']",
        "3 True",
        "(0,)",
        "refused",
        "['It', 'rains', '.']",
        "['It rains.', 'It snows.']",
        "['It', 'rains.']",
        "True PreTrainedModel",
    ]


@pytest.mark.exhaustive
def test_without_help_everybody_imports_spacy_and_transformers(tmp_path: Path) -> None:
    finished = run_python(ASKED_LATER, tmp_path, environment=WITHOUT_HELP)
    assert finished.stdout.splitlines()[0] == "['spacy', 'transformers']"


@pytest.mark.exhaustive
@needs_no_torchvision
def test_allennlp_needs_torchvision_only_without_help(tmp_path: Path) -> None:
    finished = run_python("import allennlp.data", tmp_path, environment=WITHOUT_HELP, check=False)
    assert "No module named 'torchvision'" in finished.stderr


@needs_no_torchvision
def test_images_ask_for_torchvision() -> None:
    with pytest.raises(ImportError, match="torchvision.models is needed, but torchvision is not"):
        ResnetBackbone()


@needs_no_torchvision
def test_others_see_that_torchvision_is_absent() -> None:
    assert "torchvision" not in sys.modules
    assert find_spec("torchvision") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("torchvision")


@pytest.mark.exhaustive
def test_an_installed_torchvision_is_left_alone(tmp_path: Path, torchvision: Path) -> None:
    finished = run_python(
        "import torchvision.ops.boxes as installed\n"
        "import allennlp.modules.vision.region_detector as own\n"
        "assert own.box_ops is installed\n"
        "print(own.torchvision.__file__)",
        tmp_path,
        environment={"PYTHONPATH": str(torchvision)},
    )
    assert finished.stdout.strip() == str(torchvision / "torchvision" / "__init__.py")


@pytest.mark.exhaustive
def test_the_plugin_is_found_in_an_empty_folder(tmp_path: Path) -> None:
    finished = run(Path(sys.executable).parent / "allennlp", "elmo", "--help", folder=tmp_path)
    assert finished.stdout.startswith("usage: allennlp elmo")
    assert "ERROR" not in finished.stderr


@pytest.mark.exhaustive
def test_the_plugin_may_be_named_as_well(tmp_path: Path) -> None:
    (tmp_path / ".allennlp_plugins").write_text("elmo_scratch\n", encoding="utf-8")
    words = ("elmo", "--help", "--include-package", "elmo_scratch")
    finished = run(Path(sys.executable).parent / "allennlp", *words, folder=tmp_path)
    assert finished.stdout.startswith("usage: allennlp elmo")
    assert "ERROR" not in finished.stderr


def test_the_plugin_is_found_with_help(helped: Outcomes) -> None:
    assert "elmo" in helped["plugins_are_found"]


def test_names_are_found_after_a_plain_import_with_help(helped: Outcomes) -> None:
    assert helped["names_are_found_after_a_plain_import"] == "AgNewsReader"


def test_nothing_is_downloaded_with_help(helped: Outcomes) -> None:
    assert helped["nothing_is_downloaded"] == []


def test_states_of_a_cosine_training_load_with_help(helped: Outcomes) -> None:
    assert helped["states_of_a_cosine_training_load"] == [1, 2, 3]


def test_numbers_of_numpy_1_load() -> None:
    file = io.BytesIO()
    torch.save(numpy.float64(0.25), file, _use_new_zipfile_serialization=False)
    older = file.getvalue().replace(b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n")
    assert torch.load(io.BytesIO(older)) == 0.25


class MakesAFolder:
    """Unpickling it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def __reduce__(self) -> Any:
        return os.mkdir, (self.folder,)


def test_a_checkpoint_with_code_of_its_own_is_refused(tmp_path: Path) -> None:
    torch.save({"epoch": MakesAFolder(tmp_path / "made")}, tmp_path / "state.th")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(tmp_path / "state.th")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("registry", "path"),
    [
        (DatasetReader, "subprocess.Popen"),
        (Model, "os.system"),
        (Model, "allennlp.data.Vocabulary"),
        (TokenEncoder, "torch.nn.Linear"),
        (Optimizer, "torch.nn.Linear"),
    ],
)
def test_a_config_calls_nothing_of_another_kind(registry: Type[Registrable], path: str) -> None:
    with pytest.raises(ConfigurationError, match=f"'{path}' is no {registry.__name__}: expected"):
        registry.resolve_class_name(path)
    with pytest.raises(ConfigurationError, match=f"'{path}' is no {registry.__name__}: expected"):
        registry.from_params(Params({"type": path, "args": ["true"]}))


@pytest.mark.parametrize(
    ("registry", "path"),
    [
        (DatasetReader, "elmo_scratch.data.readers.AgNewsReader"),
        (Optimizer, "torch.optim.NAdam"),
        (Seq2SeqEncoder, "allennlp.modules.seq2seq_encoders.PassThroughEncoder"),
        (Activation, "torch.nn.GELU"),
    ],
)
def test_paths_of_classes_of_the_kind_are_names_too(registry: Type[Registrable], path: str) -> None:
    found, _ = registry.resolve_class_name(path)
    assert found.__name__ == path.rsplit(".", 1)[1]


def predicting(output_file: Path, answer: str = "new") -> List[str]:
    """Where a prediction was told to write to."""
    told: List[str] = []

    def predict(args: Any) -> None:
        told.append(args.output_file)
        if not stat.S_ISFIFO(os.stat(output_file).st_mode):
            Path(args.output_file).write_text(answer)

    module = SimpleNamespace(_predict=predict)
    write_whole_file(module)
    module._predict(SimpleNamespace(output_file=str(output_file)))
    return told


@pytest.mark.parametrize(
    ("devices", "environment", "threads"),
    [
        (None, {}, []),
        ([-1], {}, []),
        ([-1, -1], {}, [4]),
        ([-1] * 30, {}, [1]),
        ([torch.device("cpu"), torch.device("cpu")], {}, [4]),
        ([0, 1], {}, []),
        ([-1, -1], {"OMP_NUM_THREADS": "8"}, []),
    ],
)
def test_processes_on_the_processors_of_a_machine_share_them(
    devices: Any, environment: Dict[str, str], threads: List[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: List[int] = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(torch, "set_num_threads", taken.append)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def _train_worker(process_rank: int, distributed_device_ids: Any = None) -> int:
        return process_rank

    module = SimpleNamespace(_train_worker=_train_worker)
    share_processors(module)
    assert module._train_worker(1, distributed_device_ids=devices) == 1
    assert taken == threads


def train_in(
    folder: Path,
    error: Optional[BaseException],
    begins: bool,
    config: Mapping[str, Any] = MappingProxyType({}),
    weights: str = "new",
    **options: bool,
) -> List[str]:
    """
    A training that writes an empty file `weights`, and ends with an error where one is given, after
    its first epoch has begun or before. Returns what lies beside its folder when the epoch begins.
    """
    beside: List[str] = []

    class TrainModel:
        def run(self) -> None:
            beside.extend(set(os.listdir(folder.parent)) - {folder.name})

    def train_model(params: Any, serialization_dir: Any, recover: bool, force: bool) -> None:
        if force:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(exist_ok=True)
        for name in ("new", weights):
            (folder / name).touch()
        if begins:
            module.TrainModel().run()
        if error is not None:
            raise error

    module = SimpleNamespace(train_model=train_model, TrainModel=TrainModel)
    replace_when_training_begins(module)
    settings = {"recover": False, "force": False, **options}
    module.train_model(Params(dict(config)), str(folder), **settings)
    return beside


@pytest.fixture
def trained(tmp_path: Path) -> Path:
    """The folder of another training."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "old").touch()
    return folder


@pytest.mark.parametrize(("begins", "left"), [(False, "old"), (True, "new")])
def test_a_forced_training_replaces_another_one_when_its_first_epoch_begins(
    begins: bool, left: str, trained: Path
) -> None:
    with pytest.raises(ConfigurationError, match="^bad$"):
        train_in(trained, ConfigurationError("bad"), begins, force=True)
    assert os.listdir(trained.parent) == ["run"]
    assert os.listdir(trained) == [left]


def test_an_interruption_costs_no_finished_training(trained: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as stop:
        train_in(trained, KeyboardInterrupt(), False, force=True)
    assert getattr(stop.value, FOLDER_CAME_BACK)
    assert os.listdir(trained.parent) == ["run"]
    assert os.listdir(trained) == ["old"]


@pytest.mark.parametrize("name", ["best.th", "model_state_e1_b0.th"])
def test_a_training_by_a_class_of_its_own_keeps_its_weights(name: str, trained: Path) -> None:
    with pytest.raises(ConfigurationError, match="^bad$") as error:
        train_in(trained, ConfigurationError("bad"), False, weights=name, force=True)
    assert not hasattr(error.value, FOLDER_CAME_BACK)
    assert sorted(os.listdir(trained.parent)) == ["run", f"run.{os.getpid()}"]
    assert sorted(os.listdir(trained)) == sorted([name, "new"])
    assert os.listdir(f"{trained}.{os.getpid()}") == ["old"]


@pytest.mark.parametrize("begins", [False, True])
def test_a_forced_training_leaves_nothing_of_another_one(begins: bool, trained: Path) -> None:
    assert train_in(trained, None, begins, force=True) == []
    assert os.listdir(trained.parent) == ["run"]
    assert os.listdir(trained) == ["new"]


def test_a_forced_training_needs_no_other_one(tmp_path: Path) -> None:
    assert train_in(tmp_path / "run", None, True, force=True) == []
    assert os.listdir(tmp_path / "run") == ["new"]


def test_a_training_without_force_replaces_nothing(trained: Path) -> None:
    with pytest.raises(ConfigurationError):
        train_in(trained, ConfigurationError("bad"), False, recover=True)
    assert sorted(os.listdir(trained)) == ["new", "old"]


def test_a_folder_that_cannot_be_moved_is_left_to_allennlp(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(ConfigurationError):
        train_in(trained, ConfigurationError("bad"), False, force=True)
    assert os.listdir(trained.parent) == ["run"]
    assert os.listdir(trained) == ["new"]


def test_several_processes_links_and_the_current_folder_are_left_to_allennlp(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "link"
    link.symlink_to(trained)
    with pytest.raises(ConfigurationError):
        train_in(link, ConfigurationError("bad"), False, force=True)
    assert link.is_symlink() and sorted(os.listdir(trained)) == ["new", "old"]
    link.unlink()
    cases: List[Tuple[Dict[str, Any], Path]] = [({"distributed": {}}, tmp_path), ({}, trained)]
    for config, inside in cases:
        (trained / "old").touch()
        monkeypatch.chdir(inside)
        with pytest.raises(ConfigurationError):
            train_in(trained, ConfigurationError("bad"), False, config, force=True)
        assert os.listdir(trained) == ["new"]


def test_a_folder_whose_place_was_taken_lies_beside_it(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def only_away(source: str, target: str) -> None:
        if target == str(trained):  # By a process that is quicker.
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY))
        rename(source, target)

    monkeypatch.setattr(os, "rename", only_away)
    with pytest.raises(ConfigurationError):
        train_in(trained, ConfigurationError("bad"), False, force=True)
    assert os.listdir(trained.parent) == [f"run.{os.getpid()}"]
    assert os.listdir(trained.parent / f"run.{os.getpid()}") == ["old"]


def test_a_folder_where_another_process_trains_by_now_is_left_to_it(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([False, True])
    monkeypatch.setattr(training, "is_locked", lambda path: next(answers))
    with pytest.raises(ConfigurationError):
        train_in(trained, ConfigurationError("bad"), False, force=True)
    beside = trained.parent / f"run.{os.getpid()}"
    assert sorted(trained.parent.iterdir()) == [trained, beside]
    assert (os.listdir(trained), os.listdir(beside)) == (["new"], ["old"])


@pytest.mark.parametrize(
    ("world_size", "devices", "named", "network"),
    [
        (2, [-1], None, "eth0"),
        (4, [-1, -1], None, "eth0"),
        (2, [-1], "eth9", "eth9"),
        (2, [-1, -1], None, None),
        (1, None, None, None),
    ],
)
def test_processes_on_several_machines_meet_on_the_network_of_the_first(
    world_size: int,
    devices: Any,
    named: Optional[str],
    network: Optional[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "interface_to", {"10.0.0.1": "eth0"}.get)
    monkeypatch.setenv(INTERFACE, named or "")
    if named is None:
        del os.environ[INTERFACE]

    def _train_worker(
        process_rank: int,
        primary_addr: str = "127.0.0.1",
        world_size: int = 1,
        distributed_device_ids: Any = None,
    ) -> Optional[str]:
        return os.environ.get(INTERFACE)

    module = SimpleNamespace(_train_worker=_train_worker)
    meet_on_one_network(module)
    settings = {"primary_addr": "10.0.0.1", "world_size": world_size}
    assert module._train_worker(0, **settings, distributed_device_ids=devices) == network


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.1.1", "255.255.255.255"])
def test_an_address_of_this_machine_alone_or_of_none_has_no_network(address: str) -> None:
    assert interface_to(address) is None


def test_a_config_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, link = tmp_path / "config.json", tmp_path / "link.json"
    Params({"a": 1}).to_file(str(file))
    link.symlink_to(file)
    others = tmp_path / "other"
    others.touch()
    assert file.stat().st_mode == others.stat().st_mode
    Params({"a": 2}).to_file(str(link))
    assert link.is_symlink() and json.loads(file.read_text()) == {"a": 2}

    def full_disk(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Params, "as_ordered_dict", full_disk)
    with pytest.raises(OSError, match="No space left"):
        Params({"a": 3}).to_file(str(file))
    assert json.loads(file.read_text()) == {"a": 2}
    assert names_in(tmp_path) == ["config.json", "link.json", "other"]


def test_predictions_go_behind_links_and_into_pipes(tmp_path: Path) -> None:
    (tmp_path / "answers").write_text("old")
    (tmp_path / "link").symlink_to("answers")
    assert predicting(tmp_path / "link") != [str(tmp_path / "link")]
    assert (tmp_path / "link").is_symlink() and (tmp_path / "answers").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    assert predicting(tmp_path / "pipe") == [str(tmp_path / "pipe")]
    assert names_in(tmp_path) == ["answers", "link", "pipe"]
    assert predicting(Path("/dev/null")) == ["/dev/null"]
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_an_archive_with_code_of_its_own_is_refused(
    archive: Path, tmp_path: Path, temporary: Path
) -> None:
    unpack(archive, tmp_path / "unpacked")
    torch.save({"weight": MakesAFolder(tmp_path / "made")}, tmp_path / "unpacked" / "weights.th")
    evil = shutil.make_archive(str(tmp_path / "evil"), "gztar", tmp_path / "unpacked")
    with pytest.raises(ConfigurationError, match=r"evil.tar.gz: .* Weights only load failed$"):
        load_archive(evil)
    assert not (tmp_path / "made").exists()
    assert names_in(temporary) == []


@pytest.mark.exhaustive
def test_the_biattentive_classifier_is_helped_even_if_it_imports_pytorch(tmp_path: Path) -> None:
    name = "BiattentiveClassificationNetwork"
    program = f"from allennlp_models.classification import {name}; print(*vars({name}))"
    assert "from_params" in run_python(program, tmp_path).stdout.split()


def test_learning_rate_falls_on_a_plateau_with_help(helped: Outcomes) -> None:
    assert helped["learning_rate_falls_on_a_plateau"] == [0.5, 0.25, 0.125]


@pytest.mark.parametrize("limit", ["norm", "value"])
def test_sparse_gradients_are_clipped_as_dense_ones_with_help(limit: str, helped: Outcomes) -> None:
    sparse, dense = (
        f"sparse_gradients_are_clipped_by_{limit}",
        f"dense_gradients_are_clipped_by_{limit}",
    )
    assert helped[sparse] == pytest.approx(helped[dense])


@pytest.mark.parametrize("place", ["ddp", "util"])
def test_a_sparse_norm_is_that_of_its_rows_with_help(place: str, helped: Outcomes) -> None:
    # Three numbers of 2, for a row that was looked up twice, and three of 1.
    assert helped[f"sparse_norm_is_clipped_by_{place}"] == pytest.approx(15**0.5)


def embedding_with_gradient(sparse: bool) -> torch.nn.Module:
    """An embedding and a dense layer, the gradients of which are the same, sparse or not."""
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Embedding(7, 3, sparse=sparse), torch.nn.Linear(3, 2))
    model(torch.tensor([1, 4, 1])).square().sum().backward()
    return model


def gradients_of(model: torch.nn.Module) -> List[torch.Tensor]:
    return [parameter.grad.to_dense() for parameter in model.parameters()]


@pytest.mark.parametrize("longest", [0.1, 1000.0])
def test_one_norm_counts_sparse_and_dense_gradients(longest: float) -> None:
    sparse, dense = embedding_with_gradient(sparse=True), embedding_with_gradient(sparse=False)
    norm = gradient_descent_trainer.clip_grad_norm_(sparse.parameters(), longest)
    expected = torch.nn.utils.clip_grad_norm_(dense.parameters(), longest)
    assert norm == pytest.approx(expected.item())
    for clipped, wanted in zip(gradients_of(sparse), gradients_of(dense), strict=True):
        assert torch.allclose(clipped, wanted)


def test_scaled_sparse_gradients_are_unscaled_once() -> None:
    embedding = torch.nn.Embedding(7, 3, sparse=True)
    optimizer = torch.optim.SGD(embedding.parameters(), lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(embedding(torch.tensor([1, 4, 1])).sum()).backward()
    scaler.unscale_(optimizer)  # as `grad_norm` does
    trainer = SimpleNamespace(
        model=embedding, optimizer=optimizer, _scaler=scaler, _grad_clipping=1.5
    )
    GradientDescentTrainer.clip_gradient(trainer)  # type: ignore[arg-type]
    assert embedding.weight.grad.to_dense()[:, 0].tolist() == [0, 1.5, 0, 0, 1, 0, 0]


def test_the_console_passes_lists_over_with_help(helped: Outcomes) -> None:
    assert helped["console_logger_passes_lists_over"] == ["loss", "tensor"]


def test_a_training_warns_of_no_old_names_with_help(helped: Outcomes) -> None:
    assert helped["training_warns_of_old_names"] == []


def test_archives_stay_in_their_folder_with_help(helped: Outcomes) -> None:
    assert helped["archives_stay_in_their_folder"] == ["ConfigurationError"]


def test_an_older_archive_stays_until_the_new_one_is_whole(helped: Outcomes) -> None:
    files = ["best.th", "config.json", "model.tar.gz"]
    assert helped["older_archive_outlasts_a_failure"] == [True, files]


def test_the_best_weights_stay_until_better_ones_are_whole(helped: Outcomes) -> None:
    assert helped["best_weights_outlast_a_failure"] == [True, ["best.th"]]


def test_a_folder_in_which_another_process_trains_is_not_removed(helped: Outcomes) -> None:
    message, *files = helped["forced_training_waits_for_another"]
    assert message.startswith("RUN: another process trains there. Wait until it has ended")
    assert files == ["training.lock"]


def test_a_text_is_said_to_be_no_archive_with_help(helped: Outcomes) -> None:
    assert helped["text_is_no_archive"].startswith("ConfigurationError")


@pytest.mark.exhaustive
def test_without_help_each_of_these_behaviours_is_worse(stock: Outcomes, helped: Outcomes) -> None:
    assert "train" in stock["plugins_are_found"] and "elmo" not in stock["plugins_are_found"]
    assert "not a registered name" in stock["names_are_found_after_a_plain_import"]
    assert stock["nothing_is_downloaded"] == ["punkt", "wordnet"]
    assert stock["states_of_a_cosine_training_load"].startswith("UnpicklingError: Weights only")
    assert "unexpected keyword argument 'verbose'" in stock["learning_rate_falls_on_a_plateau"]
    for limit in ("norm", "value"):
        dense = f"dense_gradients_are_clipped_by_{limit}"
        assert helped[dense] == pytest.approx(stock[dense])
        sparse = stock[f"sparse_gradients_are_clipped_by_{limit}"]
        assert sparse.startswith("NotImplementedError")
    for place in ("ddp", "util"):
        assert stock[f"sparse_norm_is_clipped_by_{place}"].startswith("NotImplementedError")
    assert "--- Logging error ---" in stock["console_logger_passes_lists_over"]
    assert set(stock["training_warns_of_old_names"]) == {"`torch.cuda.amp.autocast(args...)`"}
    assert stock["archives_stay_in_their_folder"] == ["outside"]
    assert stock["older_archive_outlasts_a_failure"][0] is False
    assert stock["best_weights_outlast_a_failure"] == [False, ["best.th"]]
    assert stock["forced_training_waits_for_another"] == []
    assert stock["text_is_no_archive"].startswith("ReadError")


def test_a_good_archive_loads(archive: Path, temporary: Path) -> None:
    assert load_archive(archive).model.vocab.get_vocab_size("labels") == 2
    assert names_in(temporary) == []


def empty_file(path: Path, archive: Path) -> None:
    path.touch()


def text_file(path: Path, archive: Path) -> None:
    path.write_text("This is not an archive.\n", encoding="utf-8")


def half_a_file(path: Path, archive: Path) -> None:
    path.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])


def damaged_file(path: Path, archive: Path) -> None:
    packed_with(path, level=9)
    middle, content = path.stat().st_size // 2, path.read_bytes()
    # Ones only are seldom compressed data.
    path.write_bytes(content[:middle] + b"\xff" * 50_000 + content[middle + 50_000 :])


def changed_byte(path: Path, archive: Path) -> None:
    packed_with(path, level=0)
    middle, content = path.stat().st_size // 2, bytearray(path.read_bytes())
    # It unpacks: without compression only the checksum shows it.
    content[middle] ^= 1
    path.write_bytes(content)


def packed_with(path: Path, level: int) -> None:
    """An archive of random digits, compressed at this level."""
    with tarfile.open(path, "w:gz", compresslevel=level) as tar:
        for name in ("config.json", "weights.th"):
            member = tarfile.TarInfo(name)
            member.size = 300_000
            tar.addfile(member, io.BytesIO(os.urandom(150_000).hex().encode()))


def member_above(path: Path, archive: Path) -> None:
    archive_with(path, "config.json", "../outside")


def link_out(path: Path, archive: Path) -> None:
    with tarfile.open(path, "w:gz") as tar:
        link = tarfile.TarInfo("vocabulary")
        link.type, link.linkname = tarfile.SYMTYPE, "../../outside"
        tar.addfile(link)


def absolute_member(path: Path, archive: Path) -> None:
    archive_with(path, "config.json", str(path.with_name("outside")))


def chain_of_links(path: Path, archive: Path) -> None:
    """Links whose names grow, when they are followed, beyond what the system follows."""
    with tarfile.open(path, "w:gz") as tar:
        long_name, steps, inner = "d" * 247, "abcdefghijklmnop", ""
        for step in steps:
            folder = tarfile.TarInfo(os.path.join(inner, long_name))
            folder.type = tarfile.DIRTYPE
            tar.addfile(folder)
            link = tarfile.TarInfo(os.path.join(inner, step))
            link.type, link.linkname = tarfile.SYMTYPE, long_name
            tar.addfile(link)
            inner = os.path.join(inner, long_name)
        deep = tarfile.TarInfo(os.path.join("/".join(steps), "l" * 254))
        deep.type, deep.linkname = tarfile.SYMTYPE, "../" * len(steps)
        tar.addfile(deep)
        out = tarfile.TarInfo("vocabulary")
        out.type, out.linkname = tarfile.SYMTYPE, deep.name + "/../../../.."
        tar.addfile(out)


def hard_link(path: Path, archive: Path) -> None:
    with tarfile.open(path, "w:gz") as tar:
        link = tarfile.TarInfo("config.json")
        link.type, link.linkname = tarfile.LNKTYPE, "weights.th"
        tar.addfile(link)


def device(path: Path, archive: Path) -> None:
    with tarfile.open(path, "w:gz") as tar:
        pipe = tarfile.TarInfo("config.json")
        pipe.type = tarfile.FIFOTYPE
        tar.addfile(pipe)


def written(path: Path, content: bytes) -> None:
    """Raw blocks of a tar archive, and its end."""
    with gzip.open(path, "wb") as file:
        file.write(content + bytes(2 * tarfile.BLOCKSIZE))


def name_without_end(path: Path, archive: Path) -> None:
    name = tarfile.TarInfo("config.json")
    name.type, name.size = tarfile.GNUTYPE_LONGNAME, 2**50
    written(path, name.tobuf(tarfile.GNU_FORMAT))


def size_below_zero(path: Path, archive: Path) -> None:
    """After it, others could have any size."""
    folder = tarfile.TarInfo("vocabulary")
    folder.type, folder.size = tarfile.DIRTYPE, -(10**15)
    written(path, folder.tobuf(tarfile.GNU_FORMAT))


def with_headers(path: Path, **headers: str) -> None:
    member = tarfile.TarInfo("config.json")
    member.pax_headers = headers
    written(path, member.tobuf(tarfile.PAX_FORMAT))


def size_below_zero_in_a_header(path: Path, archive: Path) -> None:
    with_headers(path, size="-1000")


def time_beyond_all_times(path: Path, archive: Path) -> None:
    with_headers(path, mtime="1e300")


def map_of_a_sparse_file(path: Path, archive: Path) -> None:
    with_headers(path, **{"GNU.sparse.map": "0,1"})


def sparse_file(path: Path, archive: Path) -> None:
    member = tarfile.TarInfo("config.json")
    member.type = tarfile.GNUTYPE_SPARSE
    written(path, member.tobuf(tarfile.GNU_FORMAT))


def many_headers(path: Path, archive: Path) -> None:
    """Each within the one before."""
    header = tarfile.TarInfo("x")
    header.type = tarfile.XHDTYPE
    written(path, 2000 * header.tobuf(tarfile.GNU_FORMAT))


MAKING_NO_SENSE = [
    *(name_without_end, size_below_zero, size_below_zero_in_a_header, time_beyond_all_times),
    *(map_of_a_sparse_file, sparse_file, many_headers),
]
LEADING_OUT = [member_above, absolute_member, link_out, chain_of_links, hard_link, device]


def test_an_archive_that_would_fill_the_disk_is_refused(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_scratch_compat.archives.ARCHIVE_ALWAYS", 2**10)
    path = tmp_path / "model.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("config.json", "weights.th"):
            member = tarfile.TarInfo(name)
            member.size = 2**20
            archive.addfile(member, io.BytesIO(bytes(2**20)))
    with pytest.raises(ConfigurationError, match="can't be unpacked: it holds more than"):
        load_archive(path)
    assert names_in(temporary) == []


def test_an_archive_without_config_is_one_clear_error(tmp_path: Path, temporary: Path) -> None:
    path = tmp_path / "model.tar.gz"
    archive_with(path, "weights.th")
    with pytest.raises(ConfigurationError, match=f"{path}: it holds no config.json, so it is not"):
        load_archive(path)
    assert names_in(tmp_path) == ["model.tar.gz", "temporary"]


@pytest.mark.parametrize(
    "write",
    [
        empty_file,
        text_file,
        half_a_file,
        damaged_file,
        changed_byte,
        *MAKING_NO_SENSE,
        *LEADING_OUT,
    ],
)
def test_a_bad_archive_is_one_clear_error(
    write: Any, archive: Path, tmp_path: Path, temporary: Path
) -> None:
    path = tmp_path / "model.tar.gz"
    write(path, archive)
    with pytest.raises(ConfigurationError, match=f"{path}: expected an archive made by `allennlp"):
        load_archive(path)
    assert names_in(tmp_path) == ["model.tar.gz", "temporary"]


# Python before 3.10.12 and 3.11.4 has no `data_filter`, and 3.12 recommends it.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("has_filter", [True, False])
@pytest.mark.parametrize("write", LEADING_OUT)
def test_what_leads_out_of_the_folder_is_refused(
    write: Any,
    has_filter: bool,
    archive: Path,
    tmp_path: Path,
    temporary: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not has_filter:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    path = tmp_path / "model.tar.gz"
    write(path, archive)
    with pytest.raises(ConfigurationError, match="would be outside the folder, or is a link"):
        load_archive(path)
    assert names_in(tmp_path) == ["model.tar.gz", "temporary"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_older_python_loads_a_good_archive(
    archive: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(tarfile, "data_filter", raising=False)
    assert load_archive(archive).model.vocab.get_vocab_size("labels") == 2


@pytest.mark.parametrize(
    ("words", "way_out"),
    [
        (
            ["wind", "rain"],
            r"same in another order: .*\"directory\": \"/.*vocabulary\"}, and train",
        ),
        (["rain", "snow"], "Bring the files that its words come from back as they were"),
    ],
)
def test_words_of_a_training_with_checkpoints_stay(
    words: List[str], way_out: str, tmp_path: Path
) -> None:
    folder = tmp_path / "vocabulary"
    Vocabulary(tokens_to_add={"tokens": ["rain", "wind"]}).save_to_files(str(folder))
    (tmp_path / "model_state_e1_b0.th").touch()
    before = (folder / "tokens.txt").read_bytes()
    with pytest.raises(ConfigurationError, match=f"not the one that it began with. .*{way_out}"):
        Vocabulary(tokens_to_add={"tokens": words}).save_to_files(str(folder))
    assert (folder / "tokens.txt").read_bytes() == before
    Vocabulary.from_files(folder).save_to_files(str(folder))
