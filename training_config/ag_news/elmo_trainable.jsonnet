local common = import "common.libsonnet";
common.classifier(mix={ type: "trainable" })
