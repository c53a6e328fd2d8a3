// Chunks of CoNLL-2000, without ELMo: see common.libsonnet.
//
//   export CHUNKING_TRAIN=train.txt CHUNKING_DEV=dev.txt
//   allennlp train training_config/chunking/none.jsonnet -s runs/chunking/none
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - F1 90.57 ± 0.28, all of the training set
// - F1 80.43 ± 0.21, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.none)
