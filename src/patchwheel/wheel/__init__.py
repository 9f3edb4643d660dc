"""The wheel format: reading, writing, names, RECORD. Knows nothing of recipes and patches."""
