// The recipe of the released original model: two LSTM layers of 4,096 cells, projected to 512, in
// each direction, over a character encoder with two highway layers.
//
// Data: text files with one sentence a line, tokens between spaces, such as the shards of the
// 1 Billion Word Benchmark, and a few held-back sentences.
//
//   export CORPUS_TRAIN='corpus/train/*' CORPUS_DEV=corpus/heldout.txt
//   allennlp train training_config/bilm/original.jsonnet -s runs/original
//
// It has not been trained to its end here, so there is no score; for speeds see benchmarks/README.md.
local official = import "official.libsonnet";
official.recipe(dim=512, cell_size=4096, num_highway=2)
