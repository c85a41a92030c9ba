"""Literal, slow implementations that the fast ones are tested against."""
