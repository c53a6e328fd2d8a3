// Coreference by the span-ranking model of Lee et al. 2017, with the settings of AllenNLP's `coref`.
//
// Data: COREF_TRAIN and COREF_DEV, a file `*.gold_conll` each: OntoNotes 5 (LDC2013T19) in the form of
// CoNLL-2012 (https://conll.cemantix.org/2012/data.html), all files of a split one after the other.
// Nothing is fetched.
//
//   allennlp evaluate runs/coref/input/model.tar.gz $COREF_DEV
//   echo '{"document": "Mrs. Halden sold her bakery. She kept the oven."}' > runs/documents.jsonl
//   allennlp predict runs/coref/input/model.tar.gz runs/documents.jsonl
//
// Published, on the test set: an average F1 of 70.4 with ELMo, 67.2 without (Peters et al. 2018,
// table 1); ELMo at the output too was worse (section 5.2).
local word_dim = 300;
local num_filters = 100;
local hidden_size = 200;
local feature_size = 20;
local scorer_dim = 150;
local max_span_width = 10;
local token_dim = word_dim + num_filters;
// A span is what the encoder made of its ends, all its embedded tokens by attention, and its width.
local span_dim(elmo) = (
  2 * (2 * hidden_size + elmo.output_dim) + token_dim + elmo.embedded_dim + feature_size
);
local scorer(input_dim) = {
  input_dim: input_dim,
  num_layers: 2,
  hidden_dims: scorer_dim,
  activations: "relu",
  dropout: 0.2,
};
{
  resolver(elmo):: {
    dataset_reader: {
      type: "coref",
      max_span_width: max_span_width,
      token_indexers: elmo.indexers {
        tokens: { type: "single_id" },
        token_characters: { type: "characters", min_padding_length: 5 },
      },
    },
    train_data_path: std.extVar("COREF_TRAIN"),
    validation_data_path: std.extVar("COREF_DEV"),
    datasets_for_vocab_creation: ["train"],
    vocabulary: { min_count: { tokens: 2 } },
    model: {
      type: "coref",
      text_field_embedder: {
        token_embedders: elmo.embedders() {
          tokens: { type: "embedding", embedding_dim: word_dim },
          token_characters: {
            type: "character_encoding",
            embedding: { embedding_dim: 16, vocab_namespace: "token_characters" },
            encoder: {
              type: "cnn",
              embedding_dim: 16,
              num_filters: num_filters,
              ngram_filter_sizes: [5],
            },
          },
        },
      },
      context_layer: elmo.encoder({
        type: "lstm",
        input_size: elmo.input_dim + token_dim,
        hidden_size: hidden_size,
        bidirectional: true,
      }),
      mention_feedforward: scorer(span_dim(elmo)),
      antecedent_feedforward: scorer(3 * span_dim(elmo) + feature_size),
      feature_size: feature_size,
      max_span_width: max_span_width,
      spans_per_word: 0.4,
      max_antecedents: 100,
      lexical_dropout: 0.5,
      initializer: {
        regexes: [
          ["^_context_layer.*weight_ih", { type: "xavier_normal" }],
          ["^_context_layer.*weight_hh", { type: "orthogonal" }],
          ["^_(mention|antecedent)_.*weight", { type: "xavier_normal" }],
          ["^_distance_embedding.weight", { type: "xavier_normal" }],
        ],
      },
    },
    data_loader: { batch_sampler: { type: "bucket", batch_size: 1, sorting_keys: ["text"] } },
    trainer: elmo.trainer {
      num_epochs: 150,
      optimizer: { type: "adam" },
      learning_rate_scheduler: { type: "reduce_on_plateau", factor: 0.5, mode: "max", patience: 2 },
      grad_norm: 5.0,
      patience: 10,
      validation_metric: "+coref_f1",
    },
  },
}
