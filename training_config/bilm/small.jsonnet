// The recipe of the released small model: two LSTM layers of 1,024 cells, projected to 128, in each
// direction, over a character encoder with one highway layer.
//
// Data: text files with one sentence a line, tokens between spaces, such as the shards of the
// 1 Billion Word Benchmark, and a few held-back sentences.
//
//   export CORPUS_TRAIN='corpus/train/*' CORPUS_DEV=corpus/heldout.txt
//   allennlp train training_config/bilm/small.jsonnet -s runs/small
//
// It has not been trained to its end here, so there is no score; for speeds see benchmarks/README.md.
local official = import "official.libsonnet";
official.recipe(dim=128, cell_size=1024, num_highway=1)
