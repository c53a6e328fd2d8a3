// Entailment by decomposable attention, without ELMo: see common.libsonnet.
//
//   export SNLI_TRAIN=snli_1.0_train.jsonl SNLI_DEV=snli_1.0_dev.jsonl
//   allennlp train training_config/snli/decomposable_attention_none.jsonnet -s runs/snli/decomposable_attention_none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.decomposable_attention(elmo.none)
