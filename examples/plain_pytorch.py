"""
A classifier of news over a biLM in plain PyTorch, with a training loop of one's own.

    python examples/plain_pytorch.py runs/bilm/model.tar.gz [--frozen]
"""

import sys
from pathlib import Path

import torch

from elmo_scratch import LayerMix, SentenceLayers
from elmo_scratch.data import SpacyBlankTokenizer
from elmo_scratch.data.readers import ag_news_rows

NEWS = Path(__file__).parent.parent / "fixtures/news"
EPOCHS, BATCH_SIZE = 10, 16

archive, *options = sys.argv[1:] or ["runs/bilm/model.tar.gz"]
torch.manual_seed(0)
tokenizer = SpacyBlankTokenizer()  # as in the training of that biLM
train, dev = (
    [
        ([token.text for token in tokenizer.tokenize(row.description)], row.label)
        for row in ag_news_rows(NEWS / name)
    ]
    for name in ("train.csv", "dev.csv")
)
labels = sorted({label for _, label in train})

layers = SentenceLayers.from_archive(archive, state="reset")
bilm = layers.bilm.requires_grad_("--frozen" not in options)
mix = LayerMix.by_name("trainable")(num_layers=bilm.num_layers)
head = torch.nn.Linear(bilm.width, len(labels))
optimizer = torch.optim.Adam(
    [
        {"params": [*mix.parameters(), *head.parameters()], "lr": 0.1},
        {"params": [weight for weight in bilm.parameters() if weight.requires_grad], "lr": 0.001},
    ]
)


def scores_of(texts: list) -> torch.Tensor:
    """Shape `(texts, labels)`: of the mean over the tokens of each text."""
    batch = layers.spell([words for words, _ in texts])
    output = bilm(batch.token_ids(), batch.mask)  # with the marks of a sentence's begin and end
    vectors = mix(output.layers, output.mask)  # (texts, positions, width)
    mask = output.mask.unsqueeze(-1)
    return head(vectors.masked_fill(~mask, 0.0).sum(1) / mask.sum(1))


for epoch in range(EPOCHS):
    total = 0.0
    for start in range(0, len(train), BATCH_SIZE):
        texts = train[start : start + BATCH_SIZE]
        targets = torch.tensor([labels.index(label) for _, label in texts])
        loss = torch.nn.functional.cross_entropy(scores_of(texts), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(texts)
    print(f"epoch {epoch}: loss {total / len(train):.3f}")

with torch.no_grad():
    found = scores_of(dev).argmax(dim=1).tolist()
right = sum(labels[place] == label for place, (_, label) in zip(found, dev))
shares = ", ".join(f"{share:.2f}" for share in mix.shares().tolist())
print(f"{right / len(dev):.1%} of {len(dev)} other texts are classified correctly")
print(f"the mix took of layers 0, 1, …: {shares}")
