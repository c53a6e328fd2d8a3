// Semantic dependencies, without ELMo: see common.libsonnet.
//
//   export SDP_TRAIN=train.sdp SDP_DEV=dev.sdp
//   allennlp train training_config/semantic_dependencies/none.jsonnet -s runs/semantic_dependencies/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.none)
