// Chunks of CoNLL-2000 by the tagger of ner/common.libsonnet: a CRF over two bidirectional LSTMs,
// which read word vectors, convolutions over characters and ELMo.
//
// Data: CHUNKING_TRAIN and CHUNKING_DEV, `train.txt` of CoNLL-2000
// (https://www.clips.uantwerpen.be/conll2000/chunking/), of which a part is held back, since the task
// has no other set to measure on but the test set: word, part of speech and chunk a line, in BIO.
// Nothing is fetched.
//
//   allennlp evaluate runs/chunking/input/model.tar.gz $CHUNKING_DEV
//   echo '{"sentence": "Mrs. Halden sold her bakery in Norbury ."}' > runs/sentences.jsonl
//   allennlp predict runs/chunking/input/model.tar.gz runs/sentences.jsonl
//
// Peters et al. 2018 have no result on it.
local word_dim = 50;
local num_filters = 128;
local hidden_size = 200;
{
  tagger(elmo):: {
    dataset_reader: {
      type: "conll2000",
      convert_to_coding_scheme: "BIOUL",
      token_indexers: elmo.indexers {
        tokens: { type: "single_id", lowercase_tokens: true },
        token_characters: { type: "characters", min_padding_length: 3 },
      },
    },
    train_data_path: std.extVar("CHUNKING_TRAIN"),
    validation_data_path: std.extVar("CHUNKING_DEV"),
    datasets_for_vocab_creation: ["train"],
    vocabulary: {
      min_count: { tokens: 2 },
      // All that there are: a small part of the training set lacks some.
      tokens_to_add: {
        labels: ["O"] + [
          place + "-" + chunk
          for chunk in ["ADJP", "ADVP", "CONJP", "INTJ", "LST", "NP", "PP", "PRT", "SBAR", "UCP", "VP"]
          for place in ["B", "I", "L", "U"]
        ],
      },
    },
    model: {
      type: "crf_tagger",
      label_encoding: "BIOUL",
      include_start_end_transitions: false,
      dropout: 0.5,
      text_field_embedder: {
        token_embedders: elmo.embedders() {
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
      regularizer: elmo.regularizer(0.1),
    },
    data_loader: { batch_sampler: { type: "bucket", batch_size: 32, sorting_keys: ["tokens"] } },
    trainer: elmo.trainer {
      num_epochs: 50,
      optimizer: { type: "adam", lr: 0.001 },
      grad_norm: 5.0,
      patience: 10,
      validation_metric: "+f1-measure-overall",
    },
  },
}
