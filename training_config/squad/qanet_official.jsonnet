// Answers in SQuAD by QANet, with ELMo of official files at the input: see common.libsonnet.
//
//   export SQUAD_TRAIN=train-v1.1.json SQUAD_DEV=dev-v1.1.json
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/squad/qanet_official.jsonnet -s runs/squad/qanet_official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.qanet(elmo.official)
