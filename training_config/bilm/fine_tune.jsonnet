// A biLM that was trained before, fitted to the texts of a domain: all its weights go on from where
// they were, with its own vocabulary.
//
// Data: text files of the domain with one sentence a line, tokens between spaces.
//
//   export BILM_ARCHIVE=runs/ptb/model.tar.gz CORPUS_TRAIN='domain/train/*' CORPUS_DEV=domain/dev.txt
//   one_stream='{"validation_data_loader": {"type": "elmo_scratch_stream", "batch_size": 1, "unroll_steps": 20}}'
//   allennlp evaluate $BILM_ARCHIVE $CORPUS_DEV --overrides "$one_stream"                 # before
//   allennlp train training_config/bilm/fine_tune.jsonnet -s runs/domain
//   allennlp evaluate runs/domain/model.tar.gz $CORPUS_DEV --overrides "$one_stream"      # after
//
// docs/results.md, "On the texts of a domain", says what three epochs reached on Wikipedia.
//
// The reader must read as that of the archive does: with its tokenizer and its lower case, where it
// has them.
{
  dataset_reader: {
    type: "elmo_scratch_sentences",
    token_indexers: {
      tokens: { type: "single_id" },
      characters: { type: "elmo_scratch_characters" },
    },
  },
  train_data_path: std.extVar("CORPUS_TRAIN"),
  validation_data_path: std.extVar("CORPUS_DEV"),
  vocabulary: { type: "from_files", directory: std.extVar("BILM_ARCHIVE") },
  model: {
    type: "elmo_scratch_bilm_from_archive",
    archive_file: std.extVar("BILM_ARCHIVE"),
    bilm: { dropout: 0.2 },
    dropout: 0.2,
  },
  data_loader: { type: "elmo_scratch_stream", batch_size: 16, unroll_steps: 20, shuffle: true },
  validation_data_loader: { type: "elmo_scratch_stream", batch_size: 16, unroll_steps: 20 },
  trainer: {
    num_epochs: 3,
    optimizer: { type: "adam", lr: 0.0005 },
    learning_rate_scheduler: { type: "linear_with_warmup", warmup_steps: 100 },
    grad_norm: 1.0,
    validation_metric: "-perplexity",
    checkpointer: { type: "elmo_scratch_whole", save_every_num_seconds: 1800 },
    callbacks: [
      { type: "elmo_scratch_exact_resume" },
      { type: "elmo_scratch_stop_at_nan" },
      { type: "elmo_scratch_speed" },
    ],
  },
}
