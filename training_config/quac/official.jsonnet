// Answers in QuAC's dialogues, with ELMo of official files at the input: see common.libsonnet.
//
//   export QUAC_TRAIN=train_v0.2.json QUAC_DEV=val_v0.2.json
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/quac/official.jsonnet -s runs/quac/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.reader(elmo.official)
