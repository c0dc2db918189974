"""The paper's tables, and what has been measured here beside them."""
