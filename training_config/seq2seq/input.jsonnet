// Sequences to sequences, with ELMo at the input: see common.libsonnet.
//
//   export PAIRS_TRAIN=train.tsv PAIRS_DEV=dev.tsv BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/seq2seq/input.jsonnet -s runs/seq2seq/input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.translator(elmo.input)
