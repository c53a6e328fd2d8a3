// Sentiment, without ELMo: see common.libsonnet.
//
//   export SST_TRAIN=train.txt SST_DEV=dev.txt
//   allennlp train training_config/sst/none.jsonnet -s runs/sst/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.classifier(elmo.none)
