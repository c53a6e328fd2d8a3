// Parts of speech, with ELMo at the input: see common.libsonnet.
//
//   export UD_TRAIN=train.conllu UD_DEV=dev.conllu BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/pos/input.jsonnet -s runs/pos/input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.input)
