// Paraphrases, with ELMo at the input: see common.libsonnet.
//
//   export PARAPHRASE_TRAIN=train.tsv PARAPHRASE_DEV=dev.tsv
//   export BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/paraphrase/input.jsonnet -s runs/paraphrase/input
//
// Not measured here: it has been tried on the fixtures only.
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.matcher(elmo.input)
