// What the recipes of the released models share: a biLM over characters, trained as the original
// was on the 1 Billion Word Benchmark (Peters et al. 2018; `bin/train_elmo.py` of bilm-tf): 128
// streams, windows of 20, Adagrad with learning rate 0.2 and accumulators that start at 1.0,
// dropout 0.1, gradients clipped to norm 10, 10 epochs, 8,192 negatives a batch.
//
// The original trains on the loss of a window, not of a word: hence `loss_weight`. It did so on three
// GPUs, each with 128 streams: `distributed` over three workers does the same. What else differs is
// told in docs/pre_training.md, "Beside the original".
local unroll_steps = 20;
local filters = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]];
local num_filters = std.foldl(function(sum, filter) sum + filter[1], filters, 0);
local normal = { type: "normal", mean: 0.0, std: 1 / std.sqrt(num_filters) };
local indexers = {
  tokens: { type: "single_id" },
  characters: { type: "elmo_scratch_characters" },
};
{
  recipe(dim, cell_size, num_highway):: {
    dataset_reader: { type: "elmo_scratch_sentences", token_indexers: indexers },
    train_data_path: std.extVar("CORPUS_TRAIN"),
    validation_data_path: std.extVar("CORPUS_DEV"),
    vocabulary: {
      type: "elmo_scratch_corpus",
      data_path: std.extVar("CORPUS_TRAIN"),
      min_count: 3,
    },
    datasets_for_vocab_creation: [],
    model: {
      type: "elmo_scratch_bilm",
      bilm: {
        token_encoder: {
          type: "char_cnn",
          dim: dim,
          filters: filters,
          num_highway: num_highway,
        },
        cell_size: cell_size,
        dropout: 0.1,
      },
      softmax: { type: "sampled", num_samples: 8192 },
      dropout: 0.1,
      loss_weight: unroll_steps,
      // As `bilm-tf` draws them. The rest is drawn so by default.
      initializer: {
        regexes: [
          ["bilm.token_encoder.convolution.convolutions.*weight", { type: "uniform", a: -0.05, b: 0.05 }],
          ["bilm.token_encoder.highways.*weight", normal],
          ["bilm.token_encoder.projection.weight", normal],
        ],
      },
    },
    data_loader: {
      type: "elmo_scratch_stream",
      batch_size: 128,
      unroll_steps: unroll_steps,
      shuffle: true,
      shuffle_sentences: true,
    },
    validation_data_loader: {
      type: "elmo_scratch_stream",
      batch_size: 16,
      unroll_steps: unroll_steps,
    },
    trainer: {
      num_epochs: 10,
      optimizer: { type: "elmo_scratch_adagrad", lr: 0.2, initial_accumulator_value: 1.0 },
      grad_norm: 10.0,
      validation_metric: "-perplexity",
      checkpointer: {
        type: "elmo_scratch_whole",
        save_every_num_batches: 5000,
        save_every_num_seconds: 1800,
        keep_most_recent_by_count: 2,
      },
      callbacks: [
        { type: "elmo_scratch_exact_resume" },
        { type: "elmo_scratch_stop_at_nan" },
        { type: "elmo_scratch_speed" },
      ],
    },
  },
}
