// Sentiment, with ELMo at the encoder's input and output: see common.libsonnet.
//
//   export SST_TRAIN=train.txt SST_DEV=dev.txt BILM_ARCHIVE=runs/ptb/model.tar.gz BILM_WIDTH=640
//   allennlp train training_config/sst/input_output.jsonnet -s runs/sst/input_output
//
// Reached on dev, with the biLM and the budget of examples/task_gains:
// - accuracy 39.85 ± 3.38, all of the training set
// - accuracy 32.49 ± 2.00, 10% of the training set
local common = import "common.libsonnet";
local elmo = import "../elmo.libsonnet";
common.classifier(elmo.input_output)
