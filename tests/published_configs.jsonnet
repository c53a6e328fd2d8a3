// The configs with ELMo that allennlp-models 2.x published, by their names there: what they have of
// ELMo and around it, with small sizes, and without GloVe. The tests run each of them with the
// type that it was written for, and with this package's in its place.
//
//   bcn                            biattentive_classification_network_elmo
//   ner, fine_grained_ner, srl     ner_elmo, fine-grained-ner, srl_elmo
//   esim, decomposable_attention   esim_elmo, decomposable_attention_elmo
//   bidaf, dialog_qa               bidaf_elmo, dialog_qa
//   constituency_parser            constituency_parser_elmo
//
// srl_elmo_5.5B is srl_elmo with other files.
local width = 12;
local elmo(dropout) = {
  type: std.extVar("ELMO_TYPE"),
  options_file: std.extVar("ELMO_OPTIONS"),
  weight_file: std.extVar("ELMO_WEIGHTS"),
  do_layer_norm: false,
  dropout: dropout,
};
local characters = { type: "elmo_characters" };
local data(folder, train, dev) = {
  train_data_path: std.extVar("TASKS") + "/" + folder + "/" + train,
  validation_data_path: std.extVar("TASKS") + "/" + folder + "/" + dev,
};
local buckets(batch_size) = { batch_sampler: { type: "bucket", batch_size: batch_size } };
local both_ways(kind, input_size, hidden_size) = {
  type: kind,
  input_size: input_size,
  hidden_size: hidden_size,
  num_layers: 1,
  bidirectional: true,
};
local bytes = {
  type: "characters",
  character_tokenizer: { byte_encoding: "utf-8", start_tokens: [259], end_tokens: [260] },
  min_padding_length: 5,
};
local byte_filters(dim) = {
  type: "character_encoding",
  embedding: { num_embeddings: 262, embedding_dim: 3 },
  encoder: { type: "cnn", embedding_dim: 3, num_filters: dim, ngram_filter_sizes: [5] },
  dropout: 0.2,
};
local lstm_initializers = [
  [".*weight_ih.*", { type: "xavier_uniform" }],
  [".*weight_hh.*", { type: "orthogonal" }],
  [".*bias_ih.*", { type: "zero" }],
  [".*bias_hh.*", { type: "lstm_hidden_bias" }],
];
{
  bcn: data("sst", "train.txt", "dev.txt") + {
    local reader = {
      type: "sst_tokens",
      granularity: "5-class",
      token_indexers: { tokens: { type: "single_id" }, elmo: characters },
    },
    dataset_reader: reader { use_subtrees: true },
    validation_dataset_reader: reader { use_subtrees: false },
    model: {
      type: "bcn",
      text_field_embedder: {
        token_embedders: {
          tokens: { type: "embedding", embedding_dim: 5, trainable: false },
        },
      },
      embedding_dropout: 0.5,
      pre_encode_feedforward: {
        input_dim: 5 + width,
        num_layers: 1,
        hidden_dims: [7],
        activations: ["relu"],
        dropout: [0.25],
      },
      encoder: both_ways("lstm", 7, 7),
      integrator: both_ways("lstm", 3 * 14, 7),
      integrator_dropout: 0.1,
      elmo: {
        options_file: std.extVar("ELMO_OPTIONS"),
        weight_file: std.extVar("ELMO_WEIGHTS"),
        do_layer_norm: false,
        dropout: 0.0,
        num_output_representations: 1,
      },
      use_input_elmo: true,
      use_integrator_output_elmo: false,
      output_layer: {
        input_dim: 4 * 14,
        num_layers: 3,
        output_dims: [11, 7, 5],
        pool_sizes: 4,
        dropout: [0.2, 0.3, 0.0],
      },
    },
    data_loader: buckets(100),
    trainer: {
      num_epochs: 1,
      patience: 5,
      grad_norm: 5.0,
      validation_metric: "+accuracy",
      optimizer: { type: "adam", lr: 0.001 },
    },
  },
  ner: data("conll2003", "train.txt", "dev.txt") + {
    dataset_reader: {
      type: "conll2003",
      tag_label: "ner",
      coding_scheme: "BIOUL",
      token_indexers: {
        tokens: { type: "single_id", lowercase_tokens: true },
        token_characters: { type: "characters", min_padding_length: 3 },
        elmo: characters,
      },
    },
    model: {
      type: "crf_tagger",
      label_encoding: "BIOUL",
      dropout: 0.5,
      include_start_end_transitions: false,
      text_field_embedder: {
        token_embedders: {
          tokens: { type: "embedding", embedding_dim: 5, trainable: true },
          elmo: elmo(0.0),
          token_characters: {
            type: "character_encoding",
            embedding: { embedding_dim: 3 },
            encoder: {
              type: "cnn",
              embedding_dim: 3,
              num_filters: 7,
              ngram_filter_sizes: [3],
              conv_layer_activation: "relu",
            },
          },
        },
      },
      encoder: both_ways("lstm", 5 + width + 7, 11) { num_layers: 2, dropout: 0.5 },
      regularizer: { regexes: [["scalar_parameters", { type: "l2", alpha: 0.1 }]] },
    },
    data_loader: { batch_size: 64 },
    trainer: {
      num_epochs: 1,
      patience: 25,
      grad_norm: 5.0,
      checkpointer: { keep_most_recent_by_count: 3 },
      validation_metric: "+f1-measure-overall",
      optimizer: { type: "adam", lr: 0.001 },
    },
  },
  fine_grained_ner: data("conll2012", "train", "dev") + {
    dataset_reader: {
      type: "ontonotes_ner",
      coding_scheme: "BIOUL",
      token_indexers: {
        elmo: characters,
        token_characters: { type: "characters" },
        tokens: { type: "single_id", lowercase_tokens: true },
      },
    },
    model: {
      type: "crf_tagger",
      label_encoding: "BIOUL",
      dropout: 0.5,
      include_start_end_transitions: false,
      verbose_metrics: true,
      text_field_embedder: {
        token_embedders: {
          elmo: elmo(0),
          token_characters: {
            type: "character_encoding",
            embedding: {
              embedding_dim: 3,
              sparse: true,
              vocab_namespace: "token_characters",
            },
            encoder: { type: "lstm", input_size: 3, hidden_size: 7, num_layers: 1 },
          },
          tokens: { type: "embedding", embedding_dim: 5, sparse: true, trainable: true },
        },
      },
      encoder: {
        type: "stacked_bidirectional_lstm",
        input_size: width + 7 + 5,
        hidden_size: 11,
        num_layers: 2,
        recurrent_dropout_probability: 0.5,
        use_highway: true,
      },
      feedforward: {
        input_dim: 22,
        num_layers: 1,
        hidden_dims: 22,
        activations: "tanh",
        dropout: 0.5,
      },
      initializer: {
        regexes: [
          [".*tag_projection_layer.*weight", { type: "xavier_uniform" }],
          [".*tag_projection_layer.*bias", { type: "zero" }],
          [".*feedforward.*weight", { type: "xavier_uniform" }],
          [".*feedforward.*bias", { type: "zero" }],
        ] + lstm_initializers,
      },
      regularizer: { regexes: [["scalar_parameters", { type: "l2", alpha: 0.001 }]] },
    },
    data_loader: buckets(64),
    trainer: {
      num_epochs: 1,
      patience: 25,
      grad_norm: 5,
      validation_metric: "+f1-measure-overall",
      optimizer: { type: "dense_sparse_adam", lr: 0.001 },
    },
  },
  srl: data("conll2012", "train", "dev") + {
    dataset_reader: { type: "srl", token_indexers: { elmo: characters } },
    model: {
      type: "srl",
      text_field_embedder: { token_embedders: { elmo: elmo(0.1) } },
      initializer: { regexes: [["tag_projection_layer.*weight", { type: "orthogonal" }]] },
      encoder: {
        type: "alternating_lstm",
        input_size: width + 7,
        hidden_size: 11,
        num_layers: 8,
        recurrent_dropout_probability: 0.1,
        use_input_projection_bias: false,
      },
      binary_feature_dim: 7,
      regularizer: { regexes: [[".*scalar_parameters.*", { type: "l2", alpha: 0.001 }]] },
    },
    data_loader: buckets(80),
    trainer: {
      num_epochs: 1,
      patience: 200,
      grad_clipping: 1.0,
      checkpointer: { keep_most_recent_by_count: 10 },
      validation_metric: "+f1-measure-overall",
      optimizer: { type: "adadelta", rho: 0.95 },
    },
  },
  esim: data("snli", "train.jsonl", "dev.jsonl") + {
    dataset_reader: { type: "snli", token_indexers: { elmo: characters } },
    model: {
      type: "esim",
      dropout: 0.5,
      text_field_embedder: { token_embedders: { elmo: elmo(0.0) } },
      encoder: both_ways("lstm", width, 7),
      matrix_attention: { type: "dot_product" },
      projection_feedforward: {
        input_dim: 4 * 14,
        num_layers: 1,
        hidden_dims: 11,
        activations: "relu",
      },
      inference_encoder: both_ways("lstm", 11, 7),
      output_feedforward: {
        input_dim: 4 * 14,
        num_layers: 1,
        hidden_dims: 11,
        activations: "relu",
        dropout: 0.5,
      },
      output_logit: { input_dim: 11, num_layers: 1, hidden_dims: 3, activations: "linear" },
      initializer: {
        regexes: [
          [".*linear_layers.*weight", { type: "xavier_uniform" }],
          [".*linear_layers.*bias", { type: "zero" }],
        ] + lstm_initializers,
      },
    },
    data_loader: buckets(32),
    trainer: {
      num_epochs: 1,
      patience: 5,
      grad_norm: 10.0,
      checkpointer: { keep_most_recent_by_count: 2 },
      validation_metric: "+accuracy",
      optimizer: { type: "adam", lr: 0.0004 },
      learning_rate_scheduler: {
        type: "reduce_on_plateau",
        factor: 0.5,
        mode: "max",
        patience: 0,
      },
    },
  },
  decomposable_attention: data("snli", "train.jsonl", "dev.jsonl") + {
    dataset_reader: {
      type: "snli",
      token_indexers: { elmo: characters },
      tokenizer: { end_tokens: ["@@NULL@@"] },
    },
    model: {
      type: "decomposable_attention",
      text_field_embedder: { token_embedders: { elmo: elmo(0.2) } },
      attend_feedforward: {
        input_dim: width,
        num_layers: 2,
        hidden_dims: 7,
        activations: "relu",
        dropout: 0.2,
      },
      matrix_attention: { type: "dot_product" },
      compare_feedforward: {
        input_dim: 2 * width,
        num_layers: 2,
        hidden_dims: 7,
        activations: "relu",
        dropout: 0.2,
      },
      aggregate_feedforward: {
        input_dim: 2 * 7,
        num_layers: 2,
        hidden_dims: [7, 3],
        activations: ["relu", "linear"],
        dropout: [0.2, 0.0],
      },
      initializer: {
        regexes: [
          [".*linear_layers.*weight", { type: "xavier_normal" }],
          [".*token_embedder_tokens\\._projection.*weight", { type: "xavier_normal" }],
        ],
      },
    },
    data_loader: buckets(64),
    trainer: {
      num_epochs: 1,
      patience: 20,
      grad_clipping: 5.0,
      validation_metric: "+accuracy",
      optimizer: { type: "adagrad" },
    },
  },
  bidaf: data("squad", "train.json", "dev.json") + {
    local embedded = 5 + width + 7,
    dataset_reader: {
      type: "squad",
      token_indexers: {
        tokens: { type: "single_id", lowercase_tokens: true },
        elmo: characters,
        token_characters: bytes,
      },
    },
    model: {
      type: "bidaf",
      text_field_embedder: {
        token_embedders: {
          tokens: { type: "embedding", embedding_dim: 5, trainable: false },
          elmo: elmo(0.0),
          token_characters: byte_filters(7),
        },
      },
      num_highway_layers: 2,
      phrase_layer: both_ways("lstm", embedded, 5),
      matrix_attention: {
        type: "linear",
        combination: "x,y,x*y",
        tensor_1_dim: 10,
        tensor_2_dim: 10,
      },
      modeling_layer: both_ways("lstm", 4 * 10, 5) { num_layers: 2, dropout: 0.2 },
      span_end_encoder: both_ways("lstm", 7 * 10, 5),
      dropout: 0.2,
    },
    data_loader: buckets(40),
    trainer: {
      num_epochs: 1,
      patience: 10,
      grad_norm: 5.0,
      validation_metric: "+em",
      learning_rate_scheduler: {
        type: "reduce_on_plateau",
        factor: 0.5,
        mode: "max",
        patience: 2,
      },
      optimizer: { type: "adam", betas: [0.9, 0.9] },
      callbacks: ["tensorboard"],
    },
  },
  dialog_qa: data("quac", "train.json", "dev.json") + {
    dataset_reader: {
      type: "quac",
      num_context_answers: 2,
      token_indexers: { elmo: characters, token_characters: bytes },
    },
    model: {
      type: "dialog_qa",
      dropout: 0.2,
      marker_embedding_dim: 3,
      num_context_answers: 2,
      text_field_embedder: {
        token_embedders: { elmo: elmo(0.2), token_characters: byte_filters(7) },
      },
      phrase_layer: both_ways("gru", width + 7 + 2 * 3, 5),
      residual_encoder: both_ways("gru", 10, 5),
      span_start_encoder: both_ways("gru", 10, 5),
      span_end_encoder: both_ways("gru", 20, 5),
    },
    data_loader: buckets(10) { max_instances_in_memory: 100 },
    validation_data_loader: buckets(3),
    trainer: {
      num_epochs: 1,
      patience: 10,
      validation_metric: "+f1",
      learning_rate_scheduler: {
        type: "reduce_on_plateau",
        factor: 0.5,
        mode: "max",
        patience: 3,
      },
      optimizer: { type: "sgd", lr: 0.01, momentum: 0.9 },
    },
  },
  constituency_parser: data("ptb", "train.txt", "dev.txt") + {
    dataset_reader: {
      type: "ptb_trees",
      use_pos_tags: true,
      token_indexers: { elmo: characters },
    },
    model: {
      type: "constituency_parser",
      text_field_embedder: { token_embedders: { elmo: elmo(0.2) } },
      pos_tag_embedding: { embedding_dim: 5, vocab_namespace: "pos" },
      initializer: {
        regexes: [
          ["tag_projection_layer.*weight", { type: "xavier_normal" }],
          ["feedforward_layer.*weight", { type: "xavier_normal" }],
          ["encoder._module.weight_ih.*", { type: "xavier_normal" }],
          ["encoder._module.weight_hh.*", { type: "orthogonal" }],
        ],
      },
      encoder: both_ways("lstm", width + 5, 7) { num_layers: 2, dropout: 0.2 },
      feedforward: {
        input_dim: 14,
        num_layers: 1,
        hidden_dims: 11,
        activations: "relu",
        dropout: 0.1,
      },
      span_extractor: { type: "bidirectional_endpoint", input_dim: 14 },
    },
    data_loader: buckets(32),
    trainer: {
      num_epochs: 1,
      patience: 20,
      grad_norm: 5.0,
      validation_metric: "+evalb_f1_measure",
      learning_rate_scheduler: { type: "multi_step", milestones: [40, 50], gamma: 0.8 },
      optimizer: { type: "adadelta", lr: 1.0, rho: 0.95 },
    },
  },
}
