// Paraphrases, with ELMo of official files at the input: see common.libsonnet.
//
//   export PARAPHRASE_TRAIN=train.tsv PARAPHRASE_DEV=dev.tsv
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/paraphrase/official.jsonnet -s runs/paraphrase/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.matcher(elmo.official)
