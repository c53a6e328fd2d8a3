// A biLM over words, pre-trained on the descriptions of AG News.
local train = std.extVar("AG_NEWS_TRAIN");
local dev = std.extVar("AG_NEWS_DEV");
{
  dataset_reader: {
    type: "elmo_scratch_sentences",
    tokenizer: { type: "spacy_blank" },
    token_indexers: { tokens: { type: "single_id", lowercase_tokens: true } },
    max_tokens: 100,
  },
  train_data_path: train,
  validation_data_path: dev,
  vocabulary: { min_count: { tokens: 3 } },
  model: {
    type: "elmo_scratch_bilm",
    bilm: {
      token_encoder: { type: "word", dim: 256 },
      num_layers: 2,
      cell_size: 512,
      dropout: 0.3,
    },
    dropout: 0.3,
  },
  data_loader: {
    batch_sampler: { type: "bucket", batch_size: 32, sorting_keys: ["sentence"], padding_noise: 0.1 },
  },
  validation_data_loader: {
    batch_sampler: { type: "bucket", batch_size: 32, sorting_keys: ["sentence"] },
  },
  trainer: {
    num_epochs: 6,
    optimizer: { type: "adam", lr: 0.002 },
    learning_rate_scheduler: { type: "linear_with_warmup", warmup_steps: 200 },
    grad_norm: 1.0,
    validation_metric: "-perplexity",
  },
}
