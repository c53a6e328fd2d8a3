// Named entities of CoNLL-2003, without ELMo: see common.libsonnet.
//
//   export NER_TRAIN=eng.train NER_DEV=eng.testa
//   allennlp train training_config/ner/none.jsonnet -s runs/ner/none
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.none)
