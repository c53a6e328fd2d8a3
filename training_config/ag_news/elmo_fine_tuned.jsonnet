// As elmo_word2vec.jsonnet, but that the biLM is trained on with the task: the nearer a layer is to
// the words, the smaller its steps ("discriminative" learning rates, Howard and Ruder 2018); for four
// epochs, and without smoothing.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv WORD_VECTORS=runs/ag_news/word2vec_titles.txt
//   export BILM_ARCHIVE=runs/ag_news/bilm_titles/model.tar.gz
//   allennlp train training_config/ag_news/elmo_fine_tuned.jsonnet -s runs/ag_news/fine_tuned
//
// examples/ag_news_study/README.md says what it reached.
local common = import "common.libsonnet";
local frozen = import "elmo_word2vec.jsonnet";
frozen {
  model+: {
    label_smoothing: 0.0,  // no other value has been measured
    text_field_embedder+: {
      token_embedders+: {
        elmo+: { requires_grad: true, keep_layers: null },
      },
    },
  },
  trainer+: {
    num_epochs: 4,
    optimizer+: {
      lr: 0.001,
      parameter_groups: common.falling_rates(top_rate=0.001, share=0.4),
    },
  },
}
