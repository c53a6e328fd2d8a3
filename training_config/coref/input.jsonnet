// Coreference, with ELMo at the input: see common.libsonnet.
//
//   export COREF_TRAIN=train.gold_conll COREF_DEV=dev.gold_conll
//   export BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/coref/input.jsonnet -s runs/coref/input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.resolver(elmo.input)
