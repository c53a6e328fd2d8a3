// Coreference, without ELMo: see common.libsonnet.
//
//   export COREF_TRAIN=train.gold_conll COREF_DEV=dev.gold_conll
//   allennlp train training_config/coref/none.jsonnet -s runs/coref/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.resolver(elmo.none)
