"""Predictors: JSON in, JSON out."""

from elmo_scratch.predictors.ag_news_predictor import AgNewsPredictor as AgNewsPredictor
from elmo_scratch.predictors.score_predictor import ScorePredictor as ScorePredictor

__all__ = ["AgNewsPredictor", "ScorePredictor"]
