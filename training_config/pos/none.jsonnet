// Parts of speech, without ELMo: see common.libsonnet.
//
//   export UD_TRAIN=train.conllu UD_DEV=dev.conllu
//   allennlp train training_config/pos/none.jsonnet -s runs/pos/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.none)
