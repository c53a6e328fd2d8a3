// Sentiment of sentences in five classes by a biattentive classification network (McCann et al. 2017),
// with the settings of AllenNLP's `biattentive_classification_network_elmo`.
//
// Data: SST_TRAIN and SST_DEV, `train.txt` and `dev.txt` of the Stanford Sentiment Treebank's trees
// (https://nlp.stanford.edu/sentiment/). All phrases of the training set are texts with a class.
// Nothing is fetched.
//
//   allennlp evaluate runs/sst/input/model.tar.gz $SST_DEV
//   echo '{"sentence": "The second half is a delight."}' > runs/sentences.jsonl
//   allennlp predict runs/sst/input/model.tar.gz runs/sentences.jsonl
//
// Published, on the test set, at the input: an accuracy of 54.7 % with ELMo, 51.4 % without (Peters et
// al. 2018, table 1).
local word_dim = 300;
local hidden_size = 300;
local integrated_dim(elmo) = 2 * hidden_size + elmo.output_dim;
local reader(elmo, use_subtrees) = {
  type: "sst_tokens",
  granularity: "5-class",
  use_subtrees: use_subtrees,
  token_indexers: elmo.indexers { tokens: { type: "single_id", lowercase_tokens: true } },
};
local lstm(input_size) = {
  type: "lstm",
  input_size: input_size,
  hidden_size: hidden_size,
  bidirectional: true,
};
{
  classifier(elmo):: {
    dataset_reader: reader(elmo, true),
    validation_dataset_reader: reader(elmo, false),
    train_data_path: std.extVar("SST_TRAIN"),
    validation_data_path: std.extVar("SST_DEV"),
    datasets_for_vocab_creation: ["train"],
    vocabulary: { min_count: { tokens: 2 } },
    model: {
      type: "bcn",
      text_field_embedder: {
        token_embedders: { tokens: { type: "embedding", embedding_dim: word_dim } },
      },
      elmo: elmo.module(),
      use_input_elmo: elmo.input_dim > 0,
      use_integrator_output_elmo: elmo.output_dim > 0,
      embedding_dropout: 0.5,
      pre_encode_feedforward: {
        input_dim: elmo.input_dim + word_dim,
        num_layers: 1,
        hidden_dims: [hidden_size],
        activations: ["relu"],
        dropout: [0.25],
      },
      encoder: lstm(hidden_size),
      integrator: lstm(3 * 2 * hidden_size),
      integrator_dropout: 0.1,
      output_layer: {
        input_dim: 4 * integrated_dim(elmo),
        num_layers: 3,
        output_dims: [4 * hidden_size, 2 * hidden_size, 5],
        pool_sizes: 4,
        dropout: [0.2, 0.3, 0.0],
      },
    },
    data_loader: { batch_sampler: { type: "bucket", batch_size: 100, sorting_keys: ["tokens"] } },
    trainer: elmo.trainer {
      num_epochs: 40,
      optimizer: { type: "adam", lr: 0.001 },
      grad_norm: 5.0,
      patience: 5,
      validation_metric: "+accuracy",
    },
  },
}
