// Dependencies, with ELMo at the input: see common.libsonnet.
//
//   export UD_TRAIN=train.conllu UD_DEV=dev.conllu BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/dependencies/input.jsonnet -s runs/dependencies/input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.input)
