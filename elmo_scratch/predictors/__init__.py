"""Predictors: JSON in, JSON out."""

from elmo_scratch.predictors.ag_news_predictor import AgNewsPredictor as AgNewsPredictor

__all__ = ["AgNewsPredictor"]
