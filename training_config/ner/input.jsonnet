// Named entities of CoNLL-2003, with ELMo at the input: see common.libsonnet.
//
//   export NER_TRAIN=eng.train NER_DEV=eng.testa BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/ner/input.jsonnet -s runs/ner/input
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - F1 91.13 ± 0.16, all of the training set
// - F1 82.35 ± 0.23, 10% of the training set
// - F1 69.00 ± 0.42, 1% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.input)
