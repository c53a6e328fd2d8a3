// Sequences to sequences, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export PAIRS_TRAIN=train.tsv PAIRS_DEV=dev.tsv BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/seq2seq/input_output.jsonnet -s runs/seq2seq/input_output
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.translator(elmo.input_output)
