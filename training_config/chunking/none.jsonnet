// Chunks of CoNLL-2000, without ELMo: see common.libsonnet.
//
//   export CHUNKING_TRAIN=train.txt CHUNKING_DEV=dev.txt
//   allennlp train training_config/chunking/none.jsonnet -s runs/chunking/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.none)
