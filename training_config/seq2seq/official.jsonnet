// Sequences to sequences, with ELMo of official files at the input: see common.libsonnet.
//
//   export PAIRS_TRAIN=train.tsv PAIRS_DEV=dev.tsv
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/seq2seq/official.jsonnet -s runs/seq2seq/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.translator(elmo.official)
