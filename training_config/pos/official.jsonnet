// Parts of speech, with ELMo of official files at the input: see common.libsonnet.
//
//   export UD_TRAIN=train.conllu UD_DEV=dev.conllu
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/pos/official.jsonnet -s runs/pos/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.official)
