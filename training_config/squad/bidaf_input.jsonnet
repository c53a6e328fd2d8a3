// Answers in SQuAD by BiDAF, with ELMo at the input: see common.libsonnet.
//
//   export SQUAD_TRAIN=train-v1.1.json SQUAD_DEV=dev-v1.1.json
//   export BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/squad/bidaf_input.jsonnet -s runs/squad/bidaf_input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.bidaf(elmo.input)
