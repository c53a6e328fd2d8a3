// What the AG News classifiers share: everything but the mix of the biLM's layers. Each token is
// [x; ELMo], a word vector of the task's own beside the mixed layers of a frozen biLM.
local word_dim = 100;
local ngrams = [1, 2, 3];
// A text shorter than the longest n-gram is padded, so that the encoder can read it.
local indexer = {
  type: "single_id",
  lowercase_tokens: true,
  token_min_padding_length: ngrams[std.length(ngrams) - 1],
};
{
  // Parameter groups of a biLM that is trained on: the nearer a layer is to the words, the smaller its steps
  // ("discriminative" learning rates, Howard and Ruder 2018). The last LSTM layer has `share` of `top_rate`, and each
  // layer below it `share` of the rate above.
  falling_rates(top_rate, share):: [
    [["bilm\\..*layers\\.1\\."], { lr: share * top_rate }],
    [["bilm\\..*layers\\.0\\."], { lr: share * share * top_rate }],
    [["bilm\\.token_encoder"], { lr: share * share * share * top_rate }],
  ],
  // A point of the curves of the mix's weights comes every `curve_step` batches.
  classifier(mix, curve_step=100):: {
    dataset_reader: {
      type: "ag_news",
      tokenizer: { type: "spacy_blank" },
      token_indexers: { words: indexer, elmo: indexer { namespace: "elmo" } },
      max_tokens: 100,
    },
    train_data_path: std.extVar("AG_NEWS_TRAIN"),
    validation_data_path: std.extVar("AG_NEWS_DEV"),
    vocabulary: { min_count: { tokens: 2 } },
    datasets_for_vocab_creation: ["train"],
    model: {
      type: "elmo_scratch_classifier",
      text_field_embedder: {
        token_embedders: {
          words: { type: "embedding", embedding_dim: word_dim },
          elmo: {
            type: "elmo_scratch",
            pretrained_file: std.extVar("BILM_ARCHIVE"),
            mix: mix,
            keep_layers: "memory",  // about 4 GiB for 18,000 descriptions
            namespace: "elmo",
          },
        },
      },
      seq2vec_encoder: {
        type: "cnn",
        num_filters: 128,
        ngram_filter_sizes: ngrams,
      },
      dropout: 0.5,
    },
    data_loader: {
      batch_sampler: { type: "bucket", batch_size: 32, sorting_keys: ["text"] },
    },
    trainer: {
      num_epochs: 6,
      optimizer: { type: "adam", lr: 0.001 },
      grad_norm: 5.0,
      patience: 2,
      validation_metric: "+accuracy",
      // What --recover needs to end in the same weights, averaged ones among them.
      checkpointer: { type: "elmo_scratch_whole", keep_most_recent_by_count: 1 },
      callbacks: [
        { type: "elmo_scratch_exact_resume" },
        { type: "elmo_scratch_stop_at_nan" },
        { type: "elmo_scratch_mix_shares", every_num_batches: curve_step },
      ],
    },
  },
}
