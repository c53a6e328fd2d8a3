// As word2vec.jsonnet, of titles and descriptions.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv WORD_VECTORS=runs/ag_news/word2vec_titles.txt
//   allennlp train training_config/ag_news/word2vec_titles.jsonnet -s runs/ag_news/no_bilm_titles
//
// The head of elmo_word2vec.jsonnet says how to make the vectors. Five seeds reached an accuracy of
// 91.31 % ± 0.21; docs/results.md compares it.
local descriptions = import "word2vec.jsonnet";
descriptions {
  dataset_reader+: { max_tokens: 120, use_title: true },
}
