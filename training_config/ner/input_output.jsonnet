// Named entities of CoNLL-2003, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export NER_TRAIN=eng.train NER_DEV=eng.testa BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/ner/input_output.jsonnet -s runs/ner/input_output
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.input_output)
