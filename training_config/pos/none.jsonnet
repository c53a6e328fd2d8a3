// Parts of speech, without ELMo: see common.libsonnet.
//
//   export UD_TRAIN=train.conllu UD_DEV=dev.conllu
//   allennlp train training_config/pos/none.jsonnet -s runs/pos/none
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - accuracy 93.60 ± 0.15, all of the training set
// - accuracy 87.14 ± 0.07, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.none)
