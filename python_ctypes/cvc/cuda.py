"""`cvc.cuda`: streams under the name that older scripts use."""

from cvc.stream import Stream, as_stream

__all__ = ["Stream", "as_stream"]
