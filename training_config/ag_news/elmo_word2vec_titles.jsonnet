// As elmo_word2vec.jsonnet, of titles and descriptions.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv WORD_VECTORS=runs/ag_news/word2vec_titles.txt
//   export BILM_ARCHIVE=runs/ag_news/bilm_titles/model.tar.gz
//   allennlp train training_config/ag_news/elmo_word2vec_titles.jsonnet -s runs/ag_news/titles
//
// Five seeds reached an accuracy of 92.14 % ± 0.34; docs/results.md compares it.
local descriptions = import "elmo_word2vec.jsonnet";
descriptions {
  dataset_reader+: { max_tokens: 120, use_title: true },
}
