// Answers in QuAC's dialogues, with ELMo at the input: see common.libsonnet.
//
//   export QUAC_TRAIN=train_v0.2.json QUAC_DEV=val_v0.2.json
//   export BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/quac/input.jsonnet -s runs/quac/input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.reader(elmo.input)
