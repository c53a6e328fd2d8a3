// Semantic dependencies, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export SDP_TRAIN=train.sdp SDP_DEV=dev.sdp BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/semantic_dependencies/input_output.jsonnet -s runs/semantic_dependencies/input_output
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.input_output)
