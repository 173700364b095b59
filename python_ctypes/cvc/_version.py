"""The version of the package, which is the version of libcvc it was made for."""

__version__ = "0.1.0"
