// As elmo_trainable.jsonnet, but that the task's own word vectors start from word2vec, the learning
// rate falls to nothing, classes are smoothed, and what is measured and kept is the average of the
// weights over the last steps; ten epochs without an early end, and word vectors of 256 numbers. The
// biLM read titles before descriptions.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv WORD_VECTORS=runs/ag_news/word2vec_titles.txt
//   mkdir -p runs/ag_news
//   allennlp elmo-vectors $AG_NEWS_TRAIN $WORD_VECTORS --method word2vec --epochs 20 --dim 256 \
//     --min-count 3 --lowercase --reader '{"type": "ag_news", "max_tokens": 120, "use_title": true}'
//   allennlp train training_config/bilm/ag_news_titles.jsonnet -s runs/ag_news/bilm_titles
//   export BILM_ARCHIVE=runs/ag_news/bilm_titles/model.tar.gz
//   allennlp train training_config/ag_news/elmo_word2vec.jsonnet -s runs/ag_news/descriptions
//
// Five seeds reached an accuracy of 91.69 % ± 0.26; docs/results.md compares it.
local common = import "common.libsonnet";
local word_vectors = std.extVar("WORD_VECTORS");  // empty to start at random
local word_dim = 256;
common.classifier(mix={ type: "trainable" }) {
  model+: {
    label_smoothing: 0.1,
    text_field_embedder+: {
      token_embedders+: {
        words+: {
          embedding_dim: word_dim,
          [if word_vectors != "" then "pretrained_file"]: word_vectors,
        },
      },
    },
  },
  trainer+: {
    num_epochs: 10,
    learning_rate_scheduler: { type: "linear_with_warmup", warmup_steps: 100 },
    moving_average: { type: "exponential", decay: 0.998 },
    patience: null,
  },
}
