// Parts of speech, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export UD_TRAIN=train.conllu UD_DEV=dev.conllu BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/pos/input_output.jsonnet -s runs/pos/input_output
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - accuracy 95.33 ± 0.12, all of the training set
// - accuracy 93.15 ± 0.06, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.tagger(elmo.input_output)
