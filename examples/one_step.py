"""One training step of a biLM over characters, in plain PyTorch: what `allennlp train` repeats."""

import torch

from elmo_scratch import BiLm, OutputSoftmax, TokenEncoder, batch_to_ids

SENTENCES = [
    "the river rose over its bank".split(),
    "the bank raised its rates".split(),
    "she sat by the river".split(),
]
torch.manual_seed(0)

# The model predicts each word, and the marks of where its sentence begins and ends.
words = ["<padding>", "<S>", "</S>"] + sorted({word for line in SENTENCES for word in line})
id_of = {word: number for number, word in enumerate(words)}
targets = torch.nn.utils.rnn.pad_sequence(
    [torch.tensor([id_of[word] for word in ["<S>", *line, "</S>"]]) for line in SENTENCES],
    batch_first=True,
)  # (batch, positions)

# What is read: the characters of each word. The encoder itself adds the words for both marks.
characters = batch_to_ids(SENTENCES)  # (batch, tokens, 50), 0 where a sentence has ended
tokens = characters[:, :, 0] > 0  # (batch, tokens)

encoder = TokenEncoder.by_name("char_cnn")(dim=32, filters=[(1, 16), (2, 16), (3, 32)])
bilm = BiLm(token_encoder=encoder, num_layers=2, cell_size=64, dropout=0.0)
softmax = OutputSoftmax.by_name("full")(num_words=len(words), dim=32)
optimizer = torch.optim.Adam([*bilm.parameters(), *softmax.parameters()], lr=0.01)


def loss_of_both_directions() -> torch.Tensor:
    """The mean of -log p over all words of both directions, in nats; shape `()`."""
    layers, mask = bilm(characters, tokens)  # (layers, batch, positions, 64), (batch, positions)
    from_left, from_right = layers[-1].chunk(2, dim=-1)  # each (batch, positions, 32)
    # A state has read its own word. So it predicts its neighbour: the left-to-right one every
    # position but the first, the right-to-left one every position but the last.
    pairs = mask[:, 1:]  # (batch, positions - 1): both neighbours are there
    states = torch.cat([from_left[:, :-1][pairs], from_right[:, 1:][pairs]])  # (predicted, 32)
    answers = torch.cat([targets[:, 1:][pairs], targets[:, :-1][pairs]])  # (predicted,)
    return softmax(states, answers).loss


before = loss_of_both_directions()
before.backward()
optimizer.step()

with torch.no_grad():
    after = loss_of_both_directions()
print(f"loss before the step: {before.item():.3f}, after it: {after.item():.3f}")
