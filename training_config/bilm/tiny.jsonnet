// The biLM over characters that comes with the package, `from_pretrained("tiny")`: two LSTM layers of
// 256 cells, projected to 96, in each direction, and an adaptive softmax over 8,000 words in lower
// case. 1,374,973 weights, so that in float16 the model folder has 2.8 MB.
//
// Its texts are the first 163 articles of WikiText-103 and UD English EWT 2.16, 721,891 words.
// examples/tiny_model prepares them, trains by this config, and writes the folder and its card:
//
//   python examples/tiny_model/make_tiny.py --run runs/tiny --output runs/tiny/model \
//     --wikitext wiki.train.tokens wiki.valid.tokens \
//     --ewt en_ewt-ud-train.conllu en_ewt-ud-dev.conllu
//
// With texts of one's own:
//
//   export CORPUS_TRAIN=train.txt CORPUS_DEV=dev.txt
//   allennlp train training_config/bilm/tiny.jsonnet -s runs/tiny
//
// It reached a perplexity of 88.7 on the two held-out texts as running text, after 5 epochs, in 31
// minutes on one core beside other work. With the weights in float16 and each sentence from zeros it
// is 84.3 on WikiText and 120.5 on EWT.
{
  dataset_reader: {
    type: "elmo_scratch_sentences",
    token_indexers: {
      tokens: { type: "single_id", lowercase_tokens: true },
      characters: { type: "elmo_scratch_characters" },
    },
  },
  train_data_path: std.extVar("CORPUS_TRAIN"),
  validation_data_path: std.extVar("CORPUS_DEV"),
  vocabulary: {
    type: "elmo_scratch_corpus",
    data_path: std.extVar("CORPUS_TRAIN"),
    lowercase: true,
    max_size: 8000,
  },
  datasets_for_vocab_creation: [],
  model: {
    type: "elmo_scratch_bilm",
    bilm: {
      token_encoder: {
        type: "char_cnn",
        dim: 96,
        filters: [[1, 16], [2, 32], [3, 48], [4, 64], [5, 64]],
        num_highway: 1,
      },
      cell_size: 256,
      dropout: 0.1,
    },
    softmax: { type: "adaptive", cutoffs: [2000] },
    dropout: 0.1,
    state_reset_probability: 0.05,
  },
  data_loader: { type: "elmo_scratch_stream", batch_size: 32, unroll_steps: 25 },
  validation_data_loader: { type: "elmo_scratch_stream", batch_size: 16, unroll_steps: 25 },
  trainer: {
    num_epochs: 5,
    optimizer: { type: "adamw", lr: 0.005, betas: [0.9, 0.99], weight_decay: 0.01 },
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
