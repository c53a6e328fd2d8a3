// Constituents, without ELMo: see common.libsonnet.
//
//   export TREES_TRAIN=train.trees TREES_DEV=dev.trees
//   allennlp train training_config/constituency/none.jsonnet -s runs/constituency/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.none)
