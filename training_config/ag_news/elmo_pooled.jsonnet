// The biLM is trained on with the task as ULMFiT does (Howard and Ruder 2018, section 3.3): each text is
// the last, the highest and the mean vector of the mixed layers; at first only the classifier and the
// mix are trained, then from epoch to epoch one more layer from the top; rates rise briefly and then
// fall, in each epoch that thaws a layer and once more over the rest, and are the lower the nearer a
// layer is to the words. No word vectors of the task's own. The biLM has two LSTM layers.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv
//   export BILM_ARCHIVE=runs/ag_news/bilm_titles/model.tar.gz
//   allennlp train training_config/ag_news/elmo_pooled.jsonnet -s runs/ag_news/pooled
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local classifier = common.classifier(mix={ type: "trainable" });
classifier {
  dataset_reader+: { token_indexers: { elmo: classifier.dataset_reader.token_indexers.elmo } },
  vocabulary: {},
  model+: {
    text_field_embedder: {
      token_embedders: {
        elmo: classifier.model.text_field_embedder.token_embedders.elmo {
          requires_grad: true,
          keep_layers: null,
        },
      },
    },
    seq2vec_encoder: { type: "elmo_scratch_pooling" },
  },
  trainer+: {
    num_epochs: 6,
    optimizer: {
      type: "adam",
      lr: 0.002,
      betas: [0.7, 0.99],
      // From the words to the top: the last group, all but the biLM, is trained first.
      parameter_groups: [
        [["bilm\\.token_encoder"], {}],
        [["bilm\\..*layers\\.0\\."], {}],
        [["bilm\\..*layers\\.1\\."], {}],
        [["^(?!.*bilm\\.)"], {}],
      ],
    },
    learning_rate_scheduler: {
      type: "slanted_triangular",
      gradual_unfreezing: true,
      discriminative_fine_tuning: true,
      decay_factor: 0.38,
    },
    moving_average: { type: "exponential", decay: 0.998 },
    patience: null,
  },
}
