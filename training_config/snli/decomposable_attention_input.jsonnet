// Entailment by decomposable attention, with ELMo at the input: see common.libsonnet.
//
//   export SNLI_TRAIN=snli_1.0_train.jsonl SNLI_DEV=snli_1.0_dev.jsonl
//   export BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/snli/decomposable_attention_input.jsonnet -s runs/snli/decomposable_attention_input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.decomposable_attention(elmo.input)
