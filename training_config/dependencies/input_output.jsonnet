// Dependencies, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export UD_TRAIN=train.conllu UD_DEV=dev.conllu BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/dependencies/input_output.jsonnet -s runs/dependencies/input_output
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - LAS 81.37 ± 0.14, all of the training set
// - LAS 68.20 ± 0.78, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.parser(elmo.input_output)
