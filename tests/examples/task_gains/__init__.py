"""What tests of the study of examples/task_gains share."""

from tests import PROJECT_ROOT

STUDY = PROJECT_ROOT / "examples" / "task_gains"

SMALL = {
    "model.bilm.token_encoder.dim": 4,
    "model.bilm.token_encoder.filters": [[1, 4]],
    "model.bilm.cell_size": 5,
    "model.softmax": {"type": "full"},
    "trainer.num_epochs": 1,
    "data_loader.batch_size": 2,
    "data_loader.unroll_steps": 5,
    "validation_data_loader.batch_size": 1,
    "validation_data_loader.unroll_steps": 5,
    "vocabulary.min_count": 1,
}
