// Entailment by ESIM, without ELMo: see common.libsonnet.
//
//   export SNLI_TRAIN=snli_1.0_train.jsonl SNLI_DEV=snli_1.0_dev.jsonl
//   allennlp train training_config/snli/esim_none.jsonnet -s runs/snli/esim_none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.esim(elmo.none)
