"""`cvc.internal`: what an object is charged in the cache."""

from cvc.cache import nbytes_in_cache

__all__ = ["nbytes_in_cache"]
