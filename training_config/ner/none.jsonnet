// Named entities of CoNLL-2003, without ELMo: see common.libsonnet.
//
//   export NER_TRAIN=eng.train NER_DEV=eng.testa
//   allennlp train training_config/ner/none.jsonnet -s runs/ner/none
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - F1 87.90 ± 0.20, all of the training set
// - F1 68.28 ± 1.29, 10% of the training set
// - F1 41.77 ± 0.82, 1% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.none)
