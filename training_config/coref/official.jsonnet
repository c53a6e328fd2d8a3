// Coreference, with ELMo of official files at the input: see common.libsonnet.
//
//   export COREF_TRAIN=train.gold_conll COREF_DEV=dev.gold_conll
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/coref/official.jsonnet -s runs/coref/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.resolver(elmo.official)
