// Dependencies, without ELMo: see common.libsonnet.
//
//   export UD_TRAIN=train.conllu UD_DEV=dev.conllu
//   allennlp train training_config/dependencies/none.jsonnet -s runs/dependencies/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.none)
