// Sentiment, with ELMo at the input: see common.libsonnet.
//
//   export SST_TRAIN=train.txt SST_DEV=dev.txt BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/sst/input.jsonnet -s runs/sst/input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.classifier(elmo.input)
