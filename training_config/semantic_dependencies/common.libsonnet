// Graphs of semantic dependencies by a biaffine parser (Dozat and Manning 2018), as AllenNLP's
// `semantic_dependencies`, but of half the size, as dependencies/common.libsonnet.
//
// Data: SDP_TRAIN and SDP_DEV, one of the formalisms of SemEval-2015 task 18 (LDC2016T10), such as
// DM: a token a line between tabs, with the columns `head` and `deprel` of the companion data
// between `pos` and `top`, as AllenNLP reads them. Nothing is fetched.
//
//   allennlp evaluate runs/semantic_dependencies/input/model.tar.gz $SDP_DEV
//   allennlp predict runs/semantic_dependencies/input/model.tar.gz $SDP_DEV --use-dataset-reader
//
// The parser reads parts of speech, so that texts to predict come in the same form, their arcs `_`.
// Peters et al. 2018 have no such result.
local word_dim = 100;
local pos_dim = 100;
local hidden_size = 200;
local num_layers = 2;
local arc_dim = 250;
local tag_dim = 100;
local reader(elmo, skip_when_no_arcs) = {
  type: "semantic_dependencies",
  token_indexers: elmo.indexers { tokens: { type: "single_id", lowercase_tokens: true } },
  skip_when_no_arcs: skip_when_no_arcs,
};
{
  parser(elmo):: {
    dataset_reader: reader(elmo, true),
    validation_dataset_reader: reader(elmo, false),
    train_data_path: std.extVar("SDP_TRAIN"),
    validation_data_path: std.extVar("SDP_DEV"),
    datasets_for_vocab_creation: ["train"],
    // All namespaces have an unknown word, arcs too: one that training lacks counts as an error.
    vocabulary: { min_count: { tokens: 2 }, non_padded_namespaces: [] },
    model: {
      type: "graph_parser",
      text_field_embedder: {
        token_embedders: elmo.embedders() {
          tokens: { type: "embedding", embedding_dim: word_dim },
        },
      },
      pos_tag_embedding: { embedding_dim: pos_dim, vocab_namespace: "pos" },
      encoder: elmo.encoder({
        type: "lstm",
        input_size: elmo.input_dim + word_dim + pos_dim,
        hidden_size: hidden_size,
        num_layers: num_layers,
        dropout: 0.3,
        bidirectional: true,
      }),
      arc_representation_dim: arc_dim,
      tag_representation_dim: tag_dim,
      dropout: 0.3,
      input_dropout: 0.3,
      initializer: {
        regexes: [
          ["^encoder.*weight_ih", { type: "xavier_uniform" }],
          ["^encoder.*weight_hh", { type: "orthogonal" }],
          ["^tag_bilinear.*weight", { type: "xavier_uniform" }],
        ],
      },
    },
    data_loader: { batch_sampler: { type: "bucket", batch_size: 32, sorting_keys: ["tokens"] } },
    trainer: elmo.trainer {
      num_epochs: 80,
      optimizer: { type: "adam", lr: 0.001, betas: [0.9, 0.9] },
      grad_norm: 5.0,
      patience: 10,
      validation_metric: "+f1",
    },
  },
}
