// Dependencies, without ELMo: see common.libsonnet.
//
//   export UD_TRAIN=train.conllu UD_DEV=dev.conllu
//   allennlp train training_config/dependencies/none.jsonnet -s runs/dependencies/none
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - LAS 75.38 ± 0.13, all of the training set
// - LAS 65.10 ± 0.24, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.none)
