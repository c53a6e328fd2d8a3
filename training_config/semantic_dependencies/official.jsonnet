// Semantic dependencies, with ELMo of official files at the input: see common.libsonnet.
//
//   export SDP_TRAIN=train.sdp SDP_DEV=dev.sdp
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/semantic_dependencies/official.jsonnet -s runs/semantic_dependencies/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.official)
