"""The model side of heed: generation, learning, adapters. Knows no platform."""
