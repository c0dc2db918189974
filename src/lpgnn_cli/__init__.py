"""Lagrangian Propagation Graph Neural Networks: an experiment runner."""
