// Answers to the questions of a dialogue, as spans of a text: BiDAF with self-attention that knows the
// answers before (Choi et al. 2018), with the settings of AllenNLP's `dialog_qa`.
//
// Data: QUAC_TRAIN and QUAC_DEV, `train_v0.2.json` and `val_v0.2.json` (https://quac.ai). Nothing is
// fetched.
//
//   allennlp evaluate runs/quac/input/model.tar.gz $QUAC_DEV
//   allennlp predict runs/quac/input/model.tar.gz $QUAC_DEV --use-dataset-reader
//
// Without --use-dataset-reader, a line of `predict` is one element of the data's `data`.
//
// Peters et al. 2018 have no such result.
local word_dim = 100;
local num_filters = 100;
local marker_dim = 10;
local num_answers = 2;
local phrase_size = 100;
local hidden_size(elmo) = phrase_size + elmo.output_dim / 2;
// What comes after the first encoder has the size of what that one makes.
local gru(elmo, input_size) = {
  type: "gru",
  input_size: input_size,
  hidden_size: hidden_size(elmo),
  bidirectional: true,
};
{
  reader(elmo):: {
    dataset_reader: {
      type: "quac",
      tokenizer: { type: "spacy_blank" },
      num_context_answers: num_answers,
      token_indexers: elmo.indexers {
        tokens: { type: "single_id", lowercase_tokens: true },
        token_characters: {  // the model takes the number of questions from this indexer's ids
          type: "characters",
          character_tokenizer: { byte_encoding: "utf-8", start_tokens: [259], end_tokens: [260] },
          min_padding_length: 5,
        },
      },
    },
    train_data_path: std.extVar("QUAC_TRAIN"),
    validation_data_path: std.extVar("QUAC_DEV"),
    datasets_for_vocab_creation: ["train"],
    vocabulary: { min_count: { tokens: 2 } },
    model: {
      type: "dialog_qa",
      dropout: 0.2,
      num_context_answers: num_answers,
      marker_embedding_dim: marker_dim,
      text_field_embedder: {
        token_embedders: elmo.embedders(dropout=0.2) {
          tokens: { type: "embedding", embedding_dim: word_dim },
          token_characters: {
            type: "character_encoding",
            embedding: { num_embeddings: 262, embedding_dim: 20 },
            encoder: {
              type: "cnn",
              embedding_dim: 20,
              num_filters: num_filters,
              ngram_filter_sizes: [5],
            },
            dropout: 0.2,
          },
        },
      },
      phrase_layer: elmo.encoder(
        gru(elmo, elmo.input_dim + word_dim + num_filters + num_answers * marker_dim) {
          hidden_size: phrase_size,
        }
      ),
      residual_encoder: gru(elmo, 2 * hidden_size(elmo)),
      span_start_encoder: gru(elmo, 2 * hidden_size(elmo)),
      span_end_encoder: gru(elmo, 4 * hidden_size(elmo)),
    },
    data_loader: {
      batch_sampler: { type: "bucket", batch_size: 10, sorting_keys: ["passage", "question"] },
      max_instances_in_memory: 100,
    },
    validation_data_loader: {
      batch_sampler: { type: "bucket", batch_size: 3, sorting_keys: ["passage", "question"] },
    },
    trainer: elmo.trainer {
      num_epochs: 30,
      optimizer: { type: "sgd", lr: 0.01, momentum: 0.9 },
      learning_rate_scheduler: { type: "reduce_on_plateau", factor: 0.5, mode: "max", patience: 3 },
      patience: 10,
      validation_metric: "+f1",
    },
  },
}
