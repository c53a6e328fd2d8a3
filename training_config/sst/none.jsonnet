// Sentiment, without ELMo: see common.libsonnet.
//
//   export SST_TRAIN=train.txt SST_DEV=dev.txt
//   allennlp train training_config/sst/none.jsonnet -s runs/sst/none
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - accuracy 39.13 ± 0.59, all of the training set
// - accuracy 27.06 ± 1.00, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.classifier(elmo.none)
