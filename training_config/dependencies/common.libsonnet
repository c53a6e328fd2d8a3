// Dependencies of a treebank by a biaffine parser (Dozat and Manning 2017), as AllenNLP's
// `dependency_parser`, but of half the size, to be trained on a processor: it has three layers of 400
// cells, of a kind that is slower there, and arcs of 500 numbers.
//
// Data: UD_TRAIN and UD_DEV, files in CoNLL-U of any treebank of Universal Dependencies
// (https://universaldependencies.org), such as English EWT. The parser reads the treebank's own parts
// of speech, in UD_DEV too. Nothing is fetched.
//
//   allennlp evaluate runs/dependencies/input/model.tar.gz $UD_DEV
//   allennlp predict runs/dependencies/input/model.tar.gz $UD_DEV --use-dataset-reader
//
// Where spaCy's en_core_web_sm is installed, which tags words, `predict` also takes lines such as
// {"sentence": "Mrs. Halden sold her bakery."} without --use-dataset-reader.
//
// Peters et al. 2018 have no such result.
local word_dim = 100;
local pos_dim = 100;
local hidden_size = 200;
local num_layers = 2;
local arc_dim = 250;
local tag_dim = 100;
{
  parser(elmo):: {
    dataset_reader: {
      type: "universal_dependencies",
      token_indexers: elmo.indexers { tokens: { type: "single_id", lowercase_tokens: true } },
    },
    train_data_path: std.extVar("UD_TRAIN"),
    validation_data_path: std.extVar("UD_DEV"),
    datasets_for_vocab_creation: ["train"],
    // All namespaces have an unknown word, relations too: one that training lacks counts as an error.
    vocabulary: { min_count: { tokens: 2 }, non_padded_namespaces: [] },
    model: {
      type: "biaffine_parser",
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
    data_loader: { batch_sampler: { type: "bucket", batch_size: 32, sorting_keys: ["words"] } },
    trainer: elmo.trainer {
      num_epochs: 30,
      optimizer: { type: "adam", lr: 0.001, betas: [0.9, 0.9] },
      grad_norm: 5.0,
      patience: 6,
      validation_metric: "+LAS",
    },
  },
}
