// Semantic roles by a deep LSTM whose layers read in alternate directions (He et al. 2017), with the
// settings of AllenNLP's `srl_elmo`.
//
// Data: SRL_TRAIN and SRL_DEV, folders with files `*.gold_conll`: OntoNotes 5 (LDC2013T19) in the form
// of CoNLL-2012 (https://conll.cemantix.org/2012/data.html). Evaluation runs the task's own script, in
// perl. Nothing is fetched.
//
//   allennlp evaluate runs/srl/input/model.tar.gz $SRL_DEV
//   allennlp predict runs/srl/input/model.tar.gz $SRL_DEV --use-dataset-reader
//
// Where spaCy's en_core_web_sm is installed, which finds the verbs, `predict` also takes lines such as
// {"sentence": "Mrs. Halden sold her bakery."} without --use-dataset-reader.
//
// Published, on the test set: F1 of 84.6 with ELMo, 81.4 without (Peters et al. 2018, table 1); ELMo
// at the output too was worse (section 5.2).
local word_dim = 100;
local verb_dim = 100;
local hidden_size = 300;
local num_layers = 8;  // 4 take half of the time
{
  labeler(elmo):: {
    dataset_reader: {
      type: "srl",
      token_indexers: elmo.indexers { tokens: { type: "single_id", lowercase_tokens: true } },
    },
    train_data_path: std.extVar("SRL_TRAIN"),
    validation_data_path: std.extVar("SRL_DEV"),
    datasets_for_vocab_creation: ["train"],
    // All namespaces have an unknown word, roles too: one that training lacks counts as an error.
    vocabulary: { min_count: { tokens: 2 }, non_padded_namespaces: [] },
    model: {
      type: "srl",
      text_field_embedder: {
        token_embedders: elmo.embedders(dropout=0.1) {
          tokens: { type: "embedding", embedding_dim: word_dim },
        },
      },
      binary_feature_dim: verb_dim,
      encoder: elmo.encoder({
        type: "alternating_lstm",
        input_size: elmo.input_dim + word_dim + verb_dim,
        hidden_size: hidden_size,
        num_layers: num_layers,
        recurrent_dropout_probability: 0.1,
        use_highway: true,
      }),
      initializer: { regexes: [["^tag_projection_layer.*weight", { type: "orthogonal" }]] },
      regularizer: elmo.regularizer(0.001),
    },
    data_loader: { batch_sampler: { type: "bucket", batch_size: 80, sorting_keys: ["tokens"] } },
    trainer: elmo.trainer {
      num_epochs: 100,
      optimizer: { type: "adadelta", rho: 0.95 },
      grad_clipping: 1.0,
      patience: 20,
      validation_metric: "+f1-measure-overall",
    },
  },
}
