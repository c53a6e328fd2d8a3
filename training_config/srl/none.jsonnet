// Semantic roles, without ELMo: see common.libsonnet.
//
//   export SRL_TRAIN=conll-2012/train SRL_DEV=conll-2012/development
//   allennlp train training_config/srl/none.jsonnet -s runs/srl/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.labeler(elmo.none)
