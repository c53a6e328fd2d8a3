// Semantic roles, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export SRL_TRAIN=conll-2012/train SRL_DEV=conll-2012/development
//   export BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/srl/input_output.jsonnet -s runs/srl/input_output
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.labeler(elmo.input_output)
