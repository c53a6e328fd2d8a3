// Entailment between two sentences, with the settings of AllenNLP's `esim_elmo` and
// `decomposable_attention_elmo`.
//
// ESIM (Chen et al. 2017) is the model of Peters et al. 2018. Decomposable attention (Parikh et al. 2016)
// has no encoder, so there is no output that ELMo could stand beside: its forms are `none`, `input` and
// `official`.
//
// Data: SNLI_TRAIN and SNLI_DEV, `snli_1.0_train.jsonl` and `snli_1.0_dev.jsonl`
// (https://nlp.stanford.edu/projects/snli/). Nothing is fetched.
//
//   allennlp evaluate runs/snli/esim_input/model.tar.gz $SNLI_DEV
//   echo '{"premise": "Two herons stand near the weir.", "hypothesis": "Birds stand."}' > runs/pairs.jsonl
//   allennlp predict runs/snli/esim_input/model.tar.gz runs/pairs.jsonl
//
// Published, on the test set, for ESIM at the input and output: an accuracy of 88.7 % with ELMo, 88.0 %
// without (Peters et al. 2018, table 1).
local word_dim = 300;
local config(elmo, tokenizer) = {
  dataset_reader: {
    type: "snli",
    tokenizer: tokenizer,
    token_indexers: elmo.indexers { tokens: { type: "single_id", lowercase_tokens: true } },
  },
  train_data_path: std.extVar("SNLI_TRAIN"),
  validation_data_path: std.extVar("SNLI_DEV"),
  datasets_for_vocab_creation: ["train"],
  vocabulary: { min_count: { tokens: 2 } },
  data_loader: {
    batch_sampler: { type: "bucket", batch_size: 64, sorting_keys: ["premise", "hypothesis"] },
  },
  trainer: elmo.trainer { validation_metric: "+accuracy" },
};
{
  esim(elmo):: config(elmo, { type: "spacy_blank" }) {
    local hidden_size = 300,
    local lstm(input_size) = {
      type: "lstm",
      input_size: input_size,
      hidden_size: hidden_size,
      bidirectional: true,
    },
    model: {
      type: "esim",
      dropout: 0.5,
      text_field_embedder: {
        token_embedders: elmo.embedders() {
          tokens: { type: "embedding", embedding_dim: word_dim },
        },
      },
      encoder: elmo.encoder(lstm(elmo.input_dim + word_dim)),
      matrix_attention: { type: "dot_product" },
      projection_feedforward: {
        input_dim: 4 * (2 * hidden_size + elmo.output_dim),
        num_layers: 1,
        hidden_dims: hidden_size,
        activations: "relu",
      },
      inference_encoder: lstm(hidden_size),
      output_feedforward: {
        input_dim: 4 * 2 * hidden_size,
        num_layers: 1,
        hidden_dims: hidden_size,
        activations: "relu",
        dropout: 0.5,
      },
      output_logit: {
        input_dim: hidden_size,
        num_layers: 1,
        hidden_dims: 3,
        activations: "linear",
      },
      initializer: {
        regexes: [
          ["^(projection|output).*linear_layers.*weight", { type: "xavier_uniform" }],
          ["^(_encoder|_inference_encoder).*weight_ih", { type: "xavier_uniform" }],
          ["^(_encoder|_inference_encoder).*weight_hh", { type: "orthogonal" }],
        ],
      },
    },
    trainer+: {
      num_epochs: 75,
      optimizer: { type: "adam", lr: 0.0004 },
      learning_rate_scheduler: { type: "reduce_on_plateau", factor: 0.5, mode: "max", patience: 0 },
      grad_norm: 10.0,
      patience: 5,
    },
  },
  // A word without a counterpart is aligned with the token that is put behind each sentence.
  decomposable_attention(elmo):: config(elmo, { type: "spacy_blank", end_tokens: ["@@NULL@@"] }) {
    local embedded_dim = elmo.embedded_dim + word_dim,
    local hidden_dim = 200,
    local feedforward(input_dim) = {
      input_dim: input_dim,
      num_layers: 2,
      hidden_dims: hidden_dim,
      activations: "relu",
      dropout: 0.2,
    },
    model: {
      type: "decomposable_attention",
      text_field_embedder: {
        token_embedders: elmo.embedders(dropout=0.2) {
          tokens: { type: "embedding", embedding_dim: word_dim },
        },
      },
      attend_feedforward: feedforward(embedded_dim),
      matrix_attention: { type: "dot_product" },
      compare_feedforward: feedforward(2 * embedded_dim),
      aggregate_feedforward: feedforward(2 * hidden_dim) {
        hidden_dims: [hidden_dim, 3],
        activations: ["relu", "linear"],
        dropout: [0.2, 0.0],
      },
      initializer: { regexes: [["^_.*linear_layers.*weight", { type: "xavier_normal" }]] },
    },
    trainer+: {
      num_epochs: 140,
      optimizer: { type: "adagrad" },
      grad_clipping: 5.0,
      patience: 20,
    },
  },
}
