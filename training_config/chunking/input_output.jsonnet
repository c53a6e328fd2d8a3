// Chunks of CoNLL-2000, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export CHUNKING_TRAIN=train.txt CHUNKING_DEV=dev.txt
//   export BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/chunking/input_output.jsonnet -s runs/chunking/input_output
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - F1 94.76 ± 0.07, all of the training set
// - F1 92.36 ± 0.11, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.input_output)
