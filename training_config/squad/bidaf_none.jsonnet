// Answers in SQuAD by BiDAF, without ELMo: see common.libsonnet.
//
//   export SQUAD_TRAIN=train-v1.1.json SQUAD_DEV=dev-v1.1.json
//   allennlp train training_config/squad/bidaf_none.jsonnet -s runs/squad/bidaf_none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.bidaf(elmo.none)
