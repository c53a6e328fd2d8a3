// How a task comes to ELMo: the switch that the configs of all tasks share. Each is in one form of
//
//   none          without a biLM
//   input         ELMo beside the vectors of words that the task's encoder reads
//   input_output  there, and beside what the encoder makes of them (Peters et al. 2018, section 3.3)
//   official      as `input`, from official files
//
// BILM_ARCHIVE is the archive of a biLM over characters, such as training_config/bilm/ptb.jsonnet
// trains. BILM_WIDTH is the size of its vectors, twice the `dim` of its token encoder: 640 for ptb.
// ELMO_OPTIONS and ELMO_WEIGHTS are official files. BILM_WIDTH is then twice the `projection_dim` in
// the options: 1024 for the released original model.
//
// The task's own vectors of words start at random. Published results start from GloVe: it is read
// with --overrides '{"model.text_field_embedder.token_embedders.tokens.pretrained_file": "FILE"}',
// where the file's vectors have the size that the config names.
local width = std.parseInt(std.extVar("BILM_WIDTH"));
local archive = {
  pretrained_file: std.extVar("BILM_ARCHIVE"),
  mix: { type: "trainable" },
  keep_layers: "memory",  // the biLM reads each text once
};
// A sentence starts from the state in which the last one ended, as in AllenNLP: nothing is kept.
local official = {
  options_file: std.extVar("ELMO_OPTIONS"),
  weight_file: std.extVar("ELMO_WEIGHTS"),
  mix: { type: "trainable" },
};
local form(num_vectors, type=null, bilm=null) = {
  local has_elmo = num_vectors > 0,
  local has_output = num_vectors == 2,
  indexers:: if has_elmo then { elmo: { type: "elmo_scratch_characters" } } else {},
  embedders(dropout=0.0):: if has_elmo then {
    elmo: bilm {
      type: type,
      dropout: dropout,
      [if has_output then "output_mix"]: { type: "trainable" },
    },
  } else {},
  // In the place of an embedder, for a model that lays ELMo's vectors where it wants them.
  module(dropout=0.0):: if has_elmo then bilm {
    num_output_representations: num_vectors,
    dropout: dropout,
  },
  // What ELMo adds to the size of an embedded token, to what the encoder reads of it, and to what
  // the encoder makes of it.
  embedded_dim:: if has_elmo then num_vectors * width else 0,
  input_dim:: if has_elmo then width else 0,
  output_dim:: if has_output then width else 0,
  // Embedders are laid side by side in the order of their names, and a model's own features behind
  // them. `elmo` is the first, so that its second vector always starts behind its first one.
  encoder(encoder):: if has_output then {
    type: "elmo_scratch_output",
    width: width,
    start: width,
    encoder: encoder,
  } else encoder,
  // Holds the weights of the layers near each other, with the paper's λ.
  regularizer(alpha):: if has_elmo then {
    regexes: [[".*mix(es\\.\\d+)?\\.weights", { type: "l2", alpha: alpha }]],
  },
  // What --recover needs to end in the same weights.
  trainer:: {
    checkpointer: { type: "elmo_scratch_whole", keep_most_recent_by_count: 1 },
    callbacks: [{ type: "elmo_scratch_exact_resume" }, { type: "elmo_scratch_stop_at_nan" }] +
               (if has_elmo then [{ type: "elmo_scratch_mix_shares" }] else []),
  },
};
{
  none: form(0),
  input: form(1, "elmo_scratch", archive),
  input_output: form(2, "elmo_scratch", archive),
  official: form(1, "elmo_scratch_from_official", official),
}
