// Whether two questions mean the same, by matching each word with the other question from several
// perspectives (BiMPM, Wang et al. 2017), with the settings of AllenNLP's `bimpm`.
//
// Data: PARAPHRASE_TRAIN and PARAPHRASE_DEV, `train.tsv` and `dev.tsv` of Quora's question pairs in the
// split of Wang et al. (https://github.com/zhiguowang/BiMPM): 1 or 0, two questions with spaces between
// tokens, and a number a line, between tabs. Nothing is fetched.
//
//   allennlp evaluate runs/paraphrase/input/model.tar.gz $PARAPHRASE_DEV
//   echo '{"premise": "When does it leave ?", "hypothesis": "Why does it leave ?"}' > runs/pairs.jsonl
//   allennlp predict runs/paraphrase/input/model.tar.gz runs/pairs.jsonl
//
// Peters et al. 2018 have no such result.
local word_dim = 300;
local character_size = 50;
local hidden_size = 200;
local aggregated_size = 100;
local num_perspectives = 10;
local token_dim = word_dim + 2 * character_size;
// Each half of what the first encoder makes is matched by itself, ELMo's directions with it.
local half_dim(elmo) = hidden_size + elmo.output_dim / 2;
local matcher(hidden_dim, is_forward) = {
  hidden_dim: hidden_dim,
  is_forward: is_forward,
  num_perspectives: num_perspectives,
};
local lstm(input_size) = {
  type: "lstm",
  input_size: input_size,
  hidden_size: hidden_size,
  bidirectional: true,
};
{
  matcher(elmo):: {
    dataset_reader: {
      type: "quora_paraphrase",
      tokenizer: { type: "whitespace" },
      token_indexers: elmo.indexers {
        tokens: { type: "single_id" },
        token_characters: { type: "characters" },
      },
    },
    train_data_path: std.extVar("PARAPHRASE_TRAIN"),
    validation_data_path: std.extVar("PARAPHRASE_DEV"),
    datasets_for_vocab_creation: ["train"],
    vocabulary: { min_count: { tokens: 2 } },
    model: {
      type: "bimpm",
      dropout: 0.1,
      text_field_embedder: {
        token_embedders: elmo.embedders() {
          tokens: { type: "embedding", embedding_dim: word_dim, padding_index: 0 },
          token_characters: {
            type: "character_encoding",
            embedding: { embedding_dim: 20, padding_index: 0, vocab_namespace: "token_characters" },
            encoder: {
              type: "gru",
              input_size: 20,
              hidden_size: character_size,
              bidirectional: true,
            },
          },
        },
      },
      matcher_word: matcher(elmo.embedded_dim + token_dim, true) { with_full_match: false },
      encoder1: elmo.encoder(lstm(elmo.input_dim + token_dim)),
      matcher_forward1: matcher(half_dim(elmo), true),
      matcher_backward1: matcher(half_dim(elmo), false),
      encoder2: lstm(2 * half_dim(elmo)),
      matcher_forward2: matcher(hidden_size, true),
      matcher_backward2: matcher(hidden_size, false),
      aggregator: {
        type: "lstm",
        // Five matchers find 4 (n + 1) numbers a token, and the four of encoded words n + 1 more.
        input_size: 24 * (num_perspectives + 1),
        hidden_size: aggregated_size,
        num_layers: 2,
        dropout: 0.1,
        bidirectional: true,
      },
      classifier_feedforward: {
        input_dim: 4 * aggregated_size,
        num_layers: 2,
        hidden_dims: [2 * aggregated_size, 2],
        activations: ["relu", "linear"],
        dropout: [0.1, 0.0],
      },
      initializer: {
        regexes: [
          ["^(encoder|aggregator).*weight_ih", { type: "xavier_normal" }],
          ["^(encoder|aggregator).*weight_hh", { type: "orthogonal" }],
          ["^(encoder|aggregator).*bias", { type: "constant", val: 0 }],
          ["^classifier_feedforward.*weight", { type: "xavier_normal" }],
          ["^classifier_feedforward.*bias", { type: "constant", val: 0 }],
        ],
      },
    },
    data_loader: {
      batch_sampler: { type: "bucket", batch_size: 32, sorting_keys: ["premise", "hypothesis"] },
    },
    trainer: elmo.trainer {
      num_epochs: 40,
      optimizer: { type: "adam", lr: 0.0005 },
      grad_clipping: 5.0,
      patience: 10,
      validation_metric: "+accuracy",
    },
  },
}
