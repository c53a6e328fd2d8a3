// Semantic roles, with ELMo of official files at the input: see common.libsonnet.
//
//   export SRL_TRAIN=conll-2012/train SRL_DEV=conll-2012/development
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/srl/official.jsonnet -s runs/srl/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.labeler(elmo.official)
