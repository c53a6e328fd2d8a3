// Parts of speech of a treebank by AllenNLP's `simple_tagger`, which takes the most probable tag of
// each word: two bidirectional LSTMs over word vectors, convolutions over characters and ELMo.
//
// Data: UD_TRAIN and UD_DEV, files in CoNLL-U of any treebank of Universal Dependencies
// (https://universaldependencies.org), such as English EWT. Tags are the universal ones, or with
// --overrides '{"dataset_reader.tags": "xpos"}' those of the language. Nothing is fetched.
//
//   allennlp evaluate runs/pos/input/model.tar.gz $UD_DEV
//   echo '{"sentence": "Mrs. Halden sold her bakery in Norbury ."}' > runs/sentences.jsonl
//   allennlp predict runs/pos/input/model.tar.gz runs/sentences.jsonl
//
// Peters et al. 2018 have no such result.
local word_dim = 100;
local num_filters = 128;
local hidden_size = 200;
{
  tagger(elmo):: {
    dataset_reader: {
      type: "ud_pos",
      token_indexers: elmo.indexers {
        tokens: { type: "single_id", lowercase_tokens: true },
        token_characters: { type: "characters", min_padding_length: 3 },
      },
    },
    train_data_path: std.extVar("UD_TRAIN"),
    validation_data_path: std.extVar("UD_DEV"),
    datasets_for_vocab_creation: ["train"],
    // All namespaces have an unknown word, labels too: a tag that training lacks counts as an error.
    vocabulary: { min_count: { tokens: 2 }, non_padded_namespaces: [] },
    model: {
      type: "simple_tagger",
      text_field_embedder: {
        token_embedders: elmo.embedders(dropout=0.2) {
          tokens: { type: "embedding", embedding_dim: word_dim },
          token_characters: {
            type: "character_encoding",
            embedding: { embedding_dim: 16, vocab_namespace: "token_characters" },
            encoder: {
              type: "cnn",
              embedding_dim: 16,
              num_filters: num_filters,
              ngram_filter_sizes: [3],
            },
            dropout: 0.2,
          },
        },
      },
      encoder: elmo.encoder({
        type: "lstm",
        input_size: elmo.input_dim + word_dim + num_filters,
        hidden_size: hidden_size,
        num_layers: 2,
        dropout: 0.5,
        bidirectional: true,
      }),
    },
    data_loader: { batch_sampler: { type: "bucket", batch_size: 32, sorting_keys: ["tokens"] } },
    trainer: elmo.trainer {
      num_epochs: 20,
      optimizer: { type: "adam", lr: 0.001 },
      grad_norm: 5.0,
      patience: 4,
      validation_metric: "+accuracy",
    },
  },
}
