// Constituents by the span-based parser of Stern et al. 2017, with the settings of AllenNLP's
// `constituency_parser_elmo`.
//
// Data: TREES_TRAIN and TREES_DEV, bracketed trees such as sections 2 to 21, and 22, of the Penn
// Treebank's Wall Street Journal (LDC99T42). The parser reads the treebank's own parts of speech, in
// TREES_DEV too. Nothing is fetched.
//
//   allennlp evaluate runs/constituency/input/model.tar.gz $TREES_DEV
//   allennlp predict runs/constituency/input/model.tar.gz $TREES_DEV --use-dataset-reader
//
// Where spaCy's en_core_web_sm is installed, which tags words, `predict` also takes lines such as
// {"sentence": "Mrs. Halden sold her bakery."} without --use-dataset-reader.
//
// F1 is EVALB's, which is compiled when the first trees are scored. Without `make` and `gcc` train with
// --overrides '{"model.evalb_directory_path": null, "trainer.validation_metric": "+tag_accuracy"}'.
//
// Peters et al. 2018 have no such result.
local word_dim = 100;
local pos_dim = 50;
local hidden_size = 250;
local span_dim = 250;
local encoded_dim(elmo) = 2 * hidden_size + elmo.output_dim;
{
  parser(elmo):: {
    dataset_reader: {
      type: "ptb_trees",
      token_indexers: elmo.indexers { tokens: { type: "single_id" } },
    },
    train_data_path: std.extVar("TREES_TRAIN"),
    validation_data_path: std.extVar("TREES_DEV"),
    datasets_for_vocab_creation: ["train"],
    // All namespaces have an unknown word, labels too: one that training lacks counts as an error.
    vocabulary: { min_count: { tokens: 2 }, non_padded_namespaces: [] },
    model: {
      type: "constituency_parser",
      text_field_embedder: {
        token_embedders: elmo.embedders(dropout=0.2) {
          tokens: { type: "embedding", embedding_dim: word_dim },
        },
      },
      pos_tag_embedding: { embedding_dim: pos_dim, vocab_namespace: "pos" },
      encoder: elmo.encoder({
        type: "lstm",
        input_size: elmo.input_dim + word_dim + pos_dim,
        hidden_size: hidden_size,
        num_layers: 2,
        dropout: 0.2,
        bidirectional: true,
      }),
      span_extractor: { type: "bidirectional_endpoint", input_dim: encoded_dim(elmo) },
      feedforward: {
        input_dim: encoded_dim(elmo),
        num_layers: 1,
        hidden_dims: span_dim,
        activations: "relu",
        dropout: 0.1,
      },
      initializer: {
        regexes: [
          ["^encoder.*weight_ih", { type: "xavier_normal" }],
          ["^encoder.*weight_hh", { type: "orthogonal" }],
          ["^(feedforward|tag_projection)_layer.*weight", { type: "xavier_normal" }],
        ],
      },
    },
    data_loader: { batch_sampler: { type: "bucket", batch_size: 32, sorting_keys: ["tokens"] } },
    trainer: elmo.trainer {
      num_epochs: 100,
      optimizer: { type: "adadelta", lr: 1.0, rho: 0.95 },
      learning_rate_scheduler: { type: "multi_step", milestones: [40, 50, 60, 70, 80], gamma: 0.8 },
      grad_norm: 5.0,
      patience: 10,
      validation_metric: "+evalb_f1_measure",
    },
  },
}
