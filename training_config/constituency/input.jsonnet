// Constituents, with ELMo at the input: see common.libsonnet.
//
//   export TREES_TRAIN=train.trees TREES_DEV=dev.trees BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/constituency/input.jsonnet -s runs/constituency/input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.input)
