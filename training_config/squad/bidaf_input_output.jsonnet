// Answers in SQuAD by BiDAF, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export SQUAD_TRAIN=train-v1.1.json SQUAD_DEV=dev-v1.1.json
//   export BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/squad/bidaf_input_output.jsonnet -s runs/squad/bidaf_input_output
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.bidaf(elmo.input_output)
