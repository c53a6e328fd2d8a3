// As elmo_word2vec.jsonnet, without a biLM: what its layers add to word vectors of the task's own that
// start from word2vec.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv WORD_VECTORS=runs/ag_news/word2vec.txt
//   mkdir -p runs/ag_news
//   allennlp elmo-vectors $AG_NEWS_TRAIN $WORD_VECTORS --method word2vec --epochs 20 --dim 256 \
//     --min-count 3 --lowercase --reader '{"type": "ag_news", "max_tokens": 100}'
//   allennlp train training_config/ag_news/word2vec.jsonnet -s runs/ag_news/no_bilm
//
// Five seeds reached an accuracy of 90.11 % ± 0.16; docs/results.md compares it.
local with_bilm = import "elmo_word2vec.jsonnet";
with_bilm {
  dataset_reader+: { token_indexers+: { elmo:: null } },
  model+: { text_field_embedder+: { token_embedders+: { elmo:: null } } },
  trainer+: {
    callbacks: [one for one in super.callbacks if one.type != "elmo_scratch_mix_shares"],
  },
}
