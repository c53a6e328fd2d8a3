// Paraphrases, without ELMo: see common.libsonnet.
//
//   export PARAPHRASE_TRAIN=train.tsv PARAPHRASE_DEV=dev.tsv
//   allennlp train training_config/paraphrase/none.jsonnet -s runs/paraphrase/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.matcher(elmo.none)
