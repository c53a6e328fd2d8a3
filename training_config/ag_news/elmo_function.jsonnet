// A classifier of AG News over a frozen biLM, whose layers are mixed by a learned function of
// them, for each token.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv BILM_ARCHIVE=runs/ag_news/words/model.tar.gz
//   allennlp train training_config/ag_news/elmo_function.jsonnet -s runs/ag_news/function
//
// It has been tried on the fixtures only; docs/results.md compares the mixes by another config.
local common = import "common.libsonnet";
common.classifier(mix={ type: "function" })
