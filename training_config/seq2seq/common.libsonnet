// One sequence of words from another, by AllenNLP's `simple_seq2seq`: an LSTM writes the target, with
// attention to what bidirectional LSTMs make of the source (Bahdanau et al. 2015). ELMo is that of the
// source's language.
//
// Data: PAIRS_TRAIN and PAIRS_DEV, a source and a target a line, between them a tab. Nothing is
// fetched.
//
//   allennlp evaluate runs/seq2seq/input/model.tar.gz $PAIRS_DEV
//   echo '{"source": "two herons left the bridge"}' > runs/sources.jsonl
//   allennlp predict runs/seq2seq/input/model.tar.gz runs/sources.jsonl
//
// Peters et al. 2018 have no such result.
local word_dim = 100;
local hidden_size = 200;
{
  translator(elmo):: {
    dataset_reader: {
      type: "seq2seq",
      source_tokenizer: { type: "whitespace" },
      source_token_indexers: elmo.indexers {
        tokens: { type: "single_id", lowercase_tokens: true },
      },
      // The biLM knows where a sentence begins and ends.
      source_add_start_token: false,
      source_add_end_token: false,
      target_token_indexers: { tokens: { type: "single_id", namespace: "target_tokens" } },
      quoting: 3,  // quotation marks are words like others
    },
    train_data_path: std.extVar("PAIRS_TRAIN"),
    validation_data_path: std.extVar("PAIRS_DEV"),
    datasets_for_vocab_creation: ["train"],
    vocabulary: { min_count: { tokens: 2 } },
    model: {
      type: "simple_seq2seq",
      source_embedder: {
        token_embedders: elmo.embedders(dropout=0.2) {
          tokens: { type: "embedding", embedding_dim: word_dim },
        },
      },
      encoder: elmo.encoder({
        type: "lstm",
        input_size: elmo.input_dim + word_dim,
        hidden_size: hidden_size,
        num_layers: 2,
        dropout: 0.2,
        bidirectional: true,
      }),
      attention: { type: "dot_product" },
      target_namespace: "target_tokens",
      target_embedding_dim: word_dim,
      beam_search: { beam_size: 5, max_steps: 60 },
    },
    data_loader: {
      batch_sampler: {
        type: "bucket",
        batch_size: 32,
        sorting_keys: ["source_tokens", "target_tokens"],
      },
    },
    trainer: elmo.trainer {
      num_epochs: 30,
      optimizer: { type: "adam", lr: 0.001 },
      grad_norm: 5.0,
      patience: 5,
      validation_metric: "+BLEU",
    },
  },
}
