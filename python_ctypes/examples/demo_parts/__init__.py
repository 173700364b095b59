"""The parts of demo.py: the video, the pipeline, the checks, the pictures."""


class DemoError(Exception):
    """Something that ends the demo; its text is the one line that is shown."""
