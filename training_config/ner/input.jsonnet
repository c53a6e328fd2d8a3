// Named entities of CoNLL-2003, with ELMo at the input: see common.libsonnet.
//
//   export NER_TRAIN=eng.train NER_DEV=eng.testa BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/ner/input.jsonnet -s runs/ner/input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.input)
