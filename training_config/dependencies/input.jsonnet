// Dependencies, with ELMo at the input: see common.libsonnet.
//
//   export UD_TRAIN=train.conllu UD_DEV=dev.conllu BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/dependencies/input.jsonnet -s runs/dependencies/input
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - LAS 81.68 ± 0.26, all of the training set
// - LAS 69.93 ± 0.36, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.input)
