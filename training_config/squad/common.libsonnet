// Answers to questions, as spans of a text, with the settings of AllenNLP's `bidaf_elmo` and `qanet`.
//
// BiDAF (Seo et al. 2017) with ELMo at the output has no highway layers: they would mix the vector that
// is to pass the encoder with the rest.
//
// QANet (Yu et al. 2018) projects what was embedded before it encodes it, so that no vector can pass
// the encoder: its forms are `none`, `input` and `official`.
//
// Data: SQUAD_TRAIN and SQUAD_DEV, `train-v1.1.json` and `dev-v1.1.json`
// (https://rajpurkar.github.io/SQuAD-explorer/). Nothing is fetched.
//
//   allennlp evaluate runs/squad/bidaf_input/model.tar.gz $SQUAD_DEV
//   echo '{"passage": "The ferry was built in 1912.", "question": "When was it built?"}' > runs/asked.jsonl
//   allennlp predict runs/squad/bidaf_input/model.tar.gz runs/asked.jsonl
//
// Published, on the test set, for the BiDAF of Clark and Gardner 2018 at the input and output: F1 of
// 85.8 with ELMo, 81.1 without (Peters et al. 2018, table 1).
local reader(elmo, characters) = {
  type: "squad",
  tokenizer: { type: "spacy_blank" },
  token_indexers: elmo.indexers {
    tokens: { type: "single_id", lowercase_tokens: true },
    token_characters: { type: "characters", min_padding_length: 5 } + characters,
  },
};
local embedder(elmo, word_dim, embedding, num_filters, dropout) = {
  token_embedders: elmo.embedders() {
    tokens: { type: "embedding", embedding_dim: word_dim },
    token_characters: {
      type: "character_encoding",
      embedding: embedding,
      encoder: {
        type: "cnn",
        embedding_dim: embedding.embedding_dim,
        num_filters: num_filters,
        ngram_filter_sizes: [5],
      },
      dropout: dropout,
    },
  },
};
local config(elmo, batch_size) = {
  train_data_path: std.extVar("SQUAD_TRAIN"),
  validation_data_path: std.extVar("SQUAD_DEV"),
  datasets_for_vocab_creation: ["train"],
  vocabulary: { min_count: { tokens: 2 } },
  data_loader: {
    batch_sampler: {
      type: "bucket",
      batch_size: batch_size,
      sorting_keys: ["passage", "question"],
    },
  },
  trainer: elmo.trainer { grad_norm: 5.0, patience: 10, validation_metric: "+em" },
};
{
  bidaf(elmo):: config(elmo, batch_size=40) {
    local word_dim = 100,
    local num_filters = 100,
    local hidden_size = 100,
    local encoded_dim = 2 * hidden_size + elmo.output_dim,
    local lstm(input_size) = {
      type: "lstm",
      input_size: input_size,
      hidden_size: hidden_size,
      bidirectional: true,
    },
    dataset_reader: reader(elmo, {
      character_tokenizer: { byte_encoding: "utf-8", start_tokens: [259], end_tokens: [260] },
    }),
    model: {
      type: "bidaf",
      text_field_embedder: embedder(
        elmo,
        word_dim,
        embedding={ num_embeddings: 262, embedding_dim: 16 },
        num_filters=num_filters,
        dropout=0.2,
      ),
      num_highway_layers: if elmo.output_dim > 0 then 0 else 2,
      phrase_layer: elmo.encoder(lstm(elmo.input_dim + word_dim + num_filters)),
      matrix_attention: {
        type: "linear",
        combination: "x,y,x*y",
        tensor_1_dim: encoded_dim,
        tensor_2_dim: encoded_dim,
      },
      modeling_layer: lstm(4 * encoded_dim) { num_layers: 2, dropout: 0.2 },
      span_end_encoder: lstm(4 * encoded_dim + 3 * 2 * hidden_size),
      dropout: 0.2,
    },
    trainer+: {
      num_epochs: 20,
      optimizer: { type: "adam", betas: [0.9, 0.9] },
      learning_rate_scheduler: { type: "reduce_on_plateau", factor: 0.5, mode: "max", patience: 2 },
    },
  },
  qanet(elmo):: config(elmo, batch_size=25) {
    local word_dim = 300,
    local num_filters = 200,
    local encoded_dim = 128,
    local num_blocks = 7,
    local encoder(num_blocks, num_convs, kernel_size) = {
      type: "qanet_encoder",
      input_dim: encoded_dim,
      hidden_dim: encoded_dim,
      attention_projection_dim: encoded_dim,
      feedforward_hidden_dim: encoded_dim,
      num_blocks: num_blocks,
      num_convs_per_block: num_convs,
      conv_kernel_size: kernel_size,
      num_attention_heads: 8,
      dropout_prob: 0.1,
      layer_dropout_undecayed_prob: 0.1,
      attention_dropout_prob: 0.0,
    },
    dataset_reader: reader(elmo, {}) {
      passage_length_limit: 400,
      question_length_limit: 50,
      skip_impossible_questions: true,
    },
    validation_dataset_reader: reader(elmo, {}) {
      passage_length_limit: 1000,
      question_length_limit: 100,
    },
    model: {
      type: "qanet",
      text_field_embedder: embedder(
        elmo,
        word_dim,
        embedding={ embedding_dim: 64, vocab_namespace: "token_characters" },
        num_filters=num_filters,
        dropout=0.0,
      ),
      num_highway_layers: 2,
      phrase_layer: encoder(num_blocks=1, num_convs=4, kernel_size=7),
      matrix_attention_layer: {
        type: "linear",
        combination: "x,y,x*y",
        tensor_1_dim: encoded_dim,
        tensor_2_dim: encoded_dim,
      },
      modeling_layer: encoder(num_blocks, num_convs=2, kernel_size=5),
      dropout_prob: 0.1,
      regularizer: { regexes: [[".*", { type: "l2", alpha: 1e-7 }]] },
    },
    trainer+: {
      num_epochs: 50,
      optimizer: { type: "adam", lr: 0.001, betas: [0.8, 0.999], eps: 1e-7 },
      moving_average: { type: "exponential", decay: 0.9999 },
    },
  },
}
