// A biLM over characters for a corpus of a million words, such as the Penn Treebank in the form of
// Mikolov et al. 2010 (10,000 words; all others are `<unk>`): two LSTM layers of 800 cells,
// projected to 320, in each direction, the exact softmax, products in bfloat16.
//
// The sentences stay in their order, so that the LSTMs remember what was said before. Now and then a
// stream starts from nothing, as evaluation does.
//
//   export PTB_TRAIN=ptb.train.txt PTB_DEV=ptb.valid.txt
//   allennlp train training_config/bilm/ptb.jsonnet -s runs/ptb
//
// It reached a perplexity of 83.1 left to right on dev, in 66 minutes on two cores of a Zen 5: docs/results.md,
// "Penn Treebank".
{
  dataset_reader: {
    type: "elmo_scratch_sentences",
    token_indexers: {
      tokens: { type: "single_id" },
      characters: { type: "elmo_scratch_characters" },
    },
  },
  train_data_path: std.extVar("PTB_TRAIN"),
  validation_data_path: std.extVar("PTB_DEV"),
  vocabulary: { type: "elmo_scratch_corpus", data_path: std.extVar("PTB_TRAIN") },
  datasets_for_vocab_creation: [],
  model: {
    type: "elmo_scratch_bilm",
    bilm: {
      token_encoder: {
        type: "char_cnn",
        dim: 320,
        filters: [[1, 32], [2, 64], [3, 96], [4, 128], [5, 128], [6, 128]],
        num_highway: 1,
      },
      cell_size: 800,
      dropout: 0.3,
      recurrent_dropout: 0.15,
    },
    dropout: 0.4,
    matmul_dtype: "bfloat16",
    state_reset_probability: 0.01,
  },
  data_loader: { type: "elmo_scratch_stream", batch_size: 40, unroll_steps: 35 },
  validation_data_loader: { type: "elmo_scratch_stream", batch_size: 16, unroll_steps: 35 },
  trainer: {
    num_epochs: 19,
    optimizer: { type: "adamw", lr: 0.0035, betas: [0.9, 0.99], weight_decay: 0.03 },
    learning_rate_scheduler: { type: "linear_with_warmup", warmup_steps: 300 },
    grad_norm: 1.0,
    validation_metric: "-perplexity",
    checkpointer: { type: "elmo_scratch_whole", save_every_num_batches: 500 },
    callbacks: [
      { type: "elmo_scratch_exact_resume" },
      { type: "elmo_scratch_stop_at_nan" },
      { type: "elmo_scratch_speed" },
    ],
  },
}
