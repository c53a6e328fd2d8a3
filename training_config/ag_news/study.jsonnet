// What the study of examples/ag_news_study compares: one classifier over different vectors of the
// same tokens. It pools them alone, without word vectors of its own beside them, so that what it
// reaches is what they hold.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv
//   export STUDY_VECTORS=words STUDY_FILE=runs/ag_news/words/model.tar.gz STUDY_MIX=trainable STUDY_SEED=0
//   allennlp train training_config/ag_news/study.jsonnet -s runs/ag_news/words_trainable_0
//
// `STUDY_VECTORS` is `words` or `characters` (`STUDY_FILE` is a biLM's archive), `fine_tuned` (one of
// words, which is trained on), `static` (a file of word vectors) or `random` (there is no file).
// docs/results.md says what five seeds reached.
local common = import "common.libsonnet";
local file = std.extVar("STUDY_FILE");
local seed = std.parseInt(std.extVar("STUDY_SEED"));
local mix = std.extVar("STUDY_MIX");
local ngrams = [1, 2, 3];
local words = {
  type: "single_id",
  lowercase_tokens: true,
  token_min_padding_length: ngrams[std.length(ngrams) - 1],
};
local characters = {
  type: "elmo_scratch_characters",
  token_min_padding_length: ngrams[std.length(ngrams) - 1],
};
local bilm = {
  type: "elmo_scratch",
  pretrained_file: file,
  // Each seed draws other frozen weights.
  mix: { type: mix } + if mix == "frozen" then { seed: seed } else {},
  keep_layers: { type: "file", path: file + ".layers" },
};
local vectors = { type: "embedding", embedding_dim: 256, trainable: false };
local chosen = {
  words: { indexer: words, embedder: bilm, width: 512 },
  characters: { indexer: characters, embedder: bilm, width: 512 },
  fine_tuned: {
    indexer: words,
    embedder: bilm { requires_grad: true, keep_layers: null },
    width: 512,
    // Below the rate of the classifier, which starts from random weights.
    rates: common.falling_rates(top_rate=0.001, share=0.4),
  },
  static: { indexer: words, embedder: vectors { pretrained_file: file }, width: 256 },
  random: { indexer: words, embedder: vectors, width: 256 },
}[std.extVar("STUDY_VECTORS")];
{
  random_seed: seed,
  numpy_seed: seed,
  pytorch_seed: seed,
  dataset_reader: {
    type: "ag_news",
    tokenizer: { type: "spacy_blank" },
    token_indexers: { tokens: chosen.indexer },
    max_tokens: 100,
  },
  train_data_path: std.extVar("AG_NEWS_TRAIN"),
  validation_data_path: std.extVar("AG_NEWS_DEV"),
  datasets_for_vocab_creation: ["train"],
  model: {
    type: "elmo_scratch_classifier",
    text_field_embedder: { token_embedders: { tokens: chosen.embedder } },
    seq2vec_encoder: {
      type: "cnn",
      embedding_dim: chosen.width,
      num_filters: 128,
      ngram_filter_sizes: ngrams,
    },
    dropout: 0.3,
    // Random vectors as long as those of word2vec: as AllenNLP draws them they would be much shorter.
    initializer: if chosen.embedder == vectors then {
      regexes: [["text_field_embedder.*", { type: "normal", std: 0.1 }]],
    },
  },
  data_loader: {
    batch_sampler: { type: "bucket", batch_size: 32, sorting_keys: ["text"] },
  },
  trainer: {
    num_epochs: 4,
    optimizer: { type: "adam", lr: 0.003, [if "rates" in chosen then "parameter_groups"]: chosen.rates },
    learning_rate_scheduler: { type: "linear_with_warmup", warmup_steps: 100 },
    grad_norm: 5.0,
    validation_metric: "+accuracy",
    checkpointer: { type: "elmo_scratch_whole", keep_most_recent_by_count: 1 },
    callbacks: [{ type: "elmo_scratch_exact_resume" }, { type: "elmo_scratch_stop_at_nan" }] +
               (if mix != "" then [{ type: "elmo_scratch_mix_shares" }] else []),
  },
}
