// Constituents, with ELMo of official files at the input: see common.libsonnet.
//
//   export TREES_TRAIN=train.trees TREES_DEV=dev.trees
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/constituency/official.jsonnet -s runs/constituency/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.official)
