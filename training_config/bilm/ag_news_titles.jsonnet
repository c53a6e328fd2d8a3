// As ag_news.jsonnet, on titles and descriptions, with words that start from word2vec of the same.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv WORD_VECTORS=runs/ag_news/word2vec_titles.txt
//   mkdir -p runs/ag_news
//   allennlp elmo-vectors $AG_NEWS_TRAIN $WORD_VECTORS --method word2vec --epochs 20 --dim 256 \
//     --min-count 3 --lowercase --reader '{"type": "ag_news", "max_tokens": 120, "use_title": true}'
//   allennlp train training_config/bilm/ag_news_titles.jsonnet -s runs/ag_news/bilm_titles
//
// It reached a perplexity of 73.8 on the titles and descriptions of dev.
local descriptions = import "ag_news.jsonnet";
local word_vectors = std.extVar("WORD_VECTORS");  // empty to start at random
descriptions {
  dataset_reader+: { max_tokens: 120, use_title: true },
  model+: { [if word_vectors != "" then "pretrained_file"]: word_vectors },
}
