// Answers in QuAC's dialogues, without ELMo: see common.libsonnet.
//
//   export QUAC_TRAIN=train_v0.2.json QUAC_DEV=val_v0.2.json
//   allennlp train training_config/quac/none.jsonnet -s runs/quac/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.reader(elmo.none)
