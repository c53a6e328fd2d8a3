// A tiny biLM over characters, pre-trained on running text within seconds: to try things out.
//
//   export CORPUS_TRAIN=fixtures/text/sentences.txt CORPUS_DEV=fixtures/text/heldout.txt
//   allennlp train training_config/bilm/fixture_characters.jsonnet -s runs/characters
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
        dim: 32,
        filters: [[1, 8], [2, 16], [3, 32]],
        num_highway: 1,
      },
      cell_size: 64,
    },
  },
  data_loader: { type: "elmo_scratch_stream", batch_size: 8, unroll_steps: 20, shuffle: true },
  validation_data_loader: { type: "elmo_scratch_stream", batch_size: 8, unroll_steps: 20 },
  trainer: {
    num_epochs: 10,
    optimizer: { type: "adam", lr: 0.01 },
    grad_norm: 1.0,
    validation_metric: "-perplexity",
    checkpointer: { type: "elmo_scratch_whole", save_every_num_batches: 50 },
    callbacks: [
      { type: "elmo_scratch_exact_resume" },
      { type: "elmo_scratch_stop_at_nan" },
      { type: "elmo_scratch_speed" },
    ],
  },
}
