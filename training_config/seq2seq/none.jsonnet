// Sequences to sequences, without ELMo: see common.libsonnet.
//
//   export PAIRS_TRAIN=train.tsv PAIRS_DEV=dev.tsv
//   allennlp train training_config/seq2seq/none.jsonnet -s runs/seq2seq/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.translator(elmo.none)
