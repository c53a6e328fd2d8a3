// Named entities of CoNLL-2003, with ELMo of official files at the input: see common.libsonnet.
//
//   export NER_TRAIN=eng.train NER_DEV=eng.testa
//   export ELMO_OPTIONS=options.json ELMO_WEIGHTS=weights.hdf5 BILM_WIDTH=1024
//   allennlp train training_config/ner/official.jsonnet -s runs/ner/official
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.official)
