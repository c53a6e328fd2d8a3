// Entailment by decomposable attention, with ELMo of official files at the input: see common.libsonnet.
//
//   export SNLI_TRAIN=snli_1.0_train.jsonl SNLI_DEV=snli_1.0_dev.jsonl
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/snli/decomposable_attention_official.jsonnet -s runs/snli/decomposable_attention_official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.decomposable_attention(elmo.official)
