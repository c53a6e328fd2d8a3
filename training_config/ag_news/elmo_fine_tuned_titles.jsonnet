// As elmo_fine_tuned.jsonnet, of titles and descriptions.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv WORD_VECTORS=runs/ag_news/word2vec_titles.txt
//   export BILM_ARCHIVE=runs/ag_news/bilm_titles/model.tar.gz
//   allennlp train training_config/ag_news/elmo_fine_tuned_titles.jsonnet -s runs/ag_news/fine_tuned_titles
//
// It has been tried on the fixtures only.
local descriptions = import "elmo_fine_tuned.jsonnet";
descriptions { dataset_reader+: { max_tokens: 120, use_title: true } }
