// Chunks of CoNLL-2000, with ELMo at the input: see common.libsonnet.
//
//   export CHUNKING_TRAIN=train.txt CHUNKING_DEV=dev.txt
//   export BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/chunking/input.jsonnet -s runs/chunking/input
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - F1 94.95 ± 0.05, all of the training set
// - F1 92.46 ± 0.13, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.input)
