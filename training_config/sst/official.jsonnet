// Sentiment, with ELMo of official files at the input: see common.libsonnet.
//
//   export SST_TRAIN=train.txt SST_DEV=dev.txt
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/sst/official.jsonnet -s runs/sst/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.classifier(elmo.official)
