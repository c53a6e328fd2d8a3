"""
A biLM in a pipeline of scikit-learn's: which of its layers, and which pooling, tells news apart.

    python examples/in_scikit_learn.py runs/bilm/model.tar.gz
"""

import sys
from pathlib import Path

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from elmo_scratch import ElmoVectorizer
from elmo_scratch.data.readers import ag_news_rows

NEWS = Path(__file__).parent.parent / "fixtures/news"

model = sys.argv[1] if len(sys.argv) > 1 else "runs/bilm/model.tar.gz"
train, dev = (list(ag_news_rows(NEWS / name)) for name in ("train.csv", "dev.csv"))
pipeline = Pipeline(
    [("elmo", ElmoVectorizer(model)), ("classes", LogisticRegression(C=10.0, max_iter=1000))]
)
grid = {"elmo__layer": ["mix", "0", "top"], "elmo__pool": ["mean", "max"]}
search = GridSearchCV(pipeline, grid, cv=3).fit(
    [row.description for row in train], [row.label for row in train]
)
for params, accuracy in zip(search.cv_results_["params"], search.cv_results_["mean_test_score"]):
    print(f"layer {params['elmo__layer']:<4} {params['elmo__pool']:<5} {accuracy:.3f}")
reached = search.score([row.description for row in dev], [row.label for row in dev])
print(f"the best of them classifies {reached:.1%} of {len(dev)} other texts correctly")
