// Named entities of CoNLL-2003, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export NER_TRAIN=eng.train NER_DEV=eng.testa BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/ner/input_output.jsonnet -s runs/ner/input_output
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - F1 90.16 ± 0.10, all of the training set
// - F1 82.28 ± 0.68, 10% of the training set
// - F1 70.64 ± 0.80, 1% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.input_output)
