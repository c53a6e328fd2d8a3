// As elmo_fine_tuned.jsonnet, of titles and descriptions.
//
//   allennlp train training_config/ag_news/elmo_fine_tuned_titles.jsonnet -s runs/ag_news/fine_tuned_titles
local descriptions = import "elmo_fine_tuned.jsonnet";
descriptions { dataset_reader+: { max_tokens: 120, use_title: true } }
