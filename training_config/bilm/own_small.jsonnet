// A biLM over characters for a small text, of a few thousand to some ten thousand sentences: two LSTM
// layers of 320 cells, projected to 128, in each direction, the exact softmax.
//
//   export CORPUS_TRAIN=texts/train.txt CORPUS_DEV=texts/dev.txt
//   allennlp train training_config/bilm/own_small.jsonnet -s runs/own
//
// `allennlp elmo-train texts.txt -s runs/own` does the same without files for validation and
// variables, and fits the numbers of streams and epochs to the text. With the first 3,000 sentences of
// UD English EWT, 51,037 words, it reached a perplexity of 66.1 on the twentieth that it held out,
// after 14 of 19 epochs, in 9 minutes on two cores of a Zen 4 beside other work.
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
        dim: 128,
        filters: [[1, 16], [2, 32], [3, 64], [4, 64], [5, 64]],
        num_highway: 1,
      },
      cell_size: 320,
      dropout: 0.3,
      recurrent_dropout: 0.1,
    },
    dropout: 0.4,
    state_reset_probability: 0.01,
  },
  data_loader: { type: "elmo_scratch_stream", batch_size: 16, unroll_steps: 20 },
  validation_data_loader: { type: "elmo_scratch_stream", batch_size: 8, unroll_steps: 20 },
  trainer: {
    num_epochs: 10,
    optimizer: { type: "adamw", lr: 0.0035, betas: [0.9, 0.99], weight_decay: 0.03 },
    learning_rate_scheduler: { type: "linear_with_warmup", warmup_steps: 100 },
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
