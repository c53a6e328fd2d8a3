// Sentiment, with ELMo at the input: see common.libsonnet.
//
//   export SST_TRAIN=train.txt SST_DEV=dev.txt BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/sst/input.jsonnet -s runs/sst/input
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - accuracy 39.55 ± 0.63, all of the training set
// - accuracy 28.98 ± 1.83, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.classifier(elmo.input)
