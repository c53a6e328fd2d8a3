// Chunks of CoNLL-2000, with ELMo of official files at the input: see common.libsonnet.
//
//   export CHUNKING_TRAIN=train.txt CHUNKING_DEV=dev.txt
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/chunking/official.jsonnet -s runs/chunking/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.official)
