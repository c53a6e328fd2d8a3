// Constituents, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export TREES_TRAIN=train.trees TREES_DEV=dev.trees BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/constituency/input_output.jsonnet -s runs/constituency/input_output
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.input_output)
