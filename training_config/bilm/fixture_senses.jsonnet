// A small biLM over characters for the tour in examples/elmo.ipynb, pre-trained within a minute, yet
// large enough to tell the bank of a river from one for money by the words around it.
//
//   export CORPUS_TRAIN=fixtures/text/senses.txt CORPUS_DEV=fixtures/text/senses_heldout.txt
//   allennlp train training_config/bilm/fixture_senses.jsonnet -s runs/senses
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
  vocabulary: { type: "elmo_scratch_corpus", data_path: std.extVar("CORPUS_TRAIN"), min_count: 2 },
  datasets_for_vocab_creation: [],
  model: {
    type: "elmo_scratch_bilm",
    bilm: {
      token_encoder: {
        type: "char_cnn",
        dim: 64,
        filters: [[1, 16], [2, 32], [3, 64], [4, 64]],
        num_highway: 1,
      },
      cell_size: 256,
      dropout: 0.3,
    },
    dropout: 0.3,
  },
  data_loader: {
    type: "elmo_scratch_stream",
    batch_size: 16,
    unroll_steps: 10,
    shuffle_sentences: true,
  },
  validation_data_loader: { type: "elmo_scratch_stream", batch_size: 4, unroll_steps: 10 },
  trainer: {
    num_epochs: 12,
    optimizer: { type: "adam", lr: 0.007 },
    learning_rate_scheduler: { type: "linear_with_warmup", warmup_steps: 50 },
    grad_norm: 1.0,
    validation_metric: "-perplexity",
    checkpointer: { type: "elmo_scratch_whole", keep_most_recent_by_count: 1 },
    callbacks: [
      { type: "elmo_scratch_exact_resume" },
      { type: "elmo_scratch_stop_at_nan" },
      { type: "elmo_scratch_speed" },
    ],
  },
}
