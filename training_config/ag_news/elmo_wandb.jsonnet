// The classifier of AG News with learned weights of the layers (Peters et al. 2018, equation 1),
// followed in Weights & Biases: losses, metrics, gradients, and the path of the layers' weights.
//
// Data: train.csv and dev.csv of AG News, and the archive of a biLM that
// training_config/bilm/ag_news.jsonnet has trained.
//
//   export AG_NEWS_TRAIN=train.csv AG_NEWS_DEV=dev.csv BILM_ARCHIVE=runs/ag_news/words/model.tar.gz
//   wandb login    # or, without an account, WANDB_MODE=offline before the command
//   allennlp train training_config/ag_news/elmo_wandb.jsonnet -s runs/ag_news/wandb
//
// It trains what elmo_trainable.jsonnet trains, whose head says what that reached.
local common = import "common.libsonnet";
common.classifier(mix={ type: "trainable" }, curve_step=10) + {
  trainer+: {
    callbacks+: [
      {
        type: "wandb",
        project: "elmo_scratch",
        summary_interval: 10,
        should_log_parameter_statistics: false,
        should_log_learning_rate: true,
      },
    ],
  },
}
