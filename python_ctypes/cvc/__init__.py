"""libcvc for Python: GPU tensors and images from an object cache, and operators on them.

Scripts written for CV-CUDA run with `import cvc as cvcuda`. The library works the same on a machine
without a GPU, where its host backend runs on the CPU (CVC_BACKEND=auto|cuda|host chooses).

    import cvc
    frame = cvc.upload(array, "HWC")                       # a NumPy array, copied to the device
    small = cvc.pillowresize(frame, (224, 224, 3))         # drawn from the cache
    planes = cvc.reformat(cvc.convertto(small, "float32", 1 / 255), "CHW")
    print(planes.cpu().shape, cvc.cache_stats().hits_exact)
"""

from __future__ import annotations

from . import cuda, internal
from ._device import (
    DeviceInfo,
    current_device,
    device_count,
    device_info,
    set_device,
    synchronize,
)
from ._export import Export
from ._lib import backend
from ._preprocess import Convert, Normalize, preprocess, preprocess_into
from ._version import __version__
from .batch import ImageBatchVarShape, TensorBatch, as_images, as_tensors
from .cache import (
    CacheStats,
    cache_size,
    cache_stats,
    clear_cache,
    current_cache_size_inbytes,
    get_cache_limit_inbytes,
    reset_peak_cache_stats,
    set_cache_limit_inbytes,
    trim_cache,
)
from .errors import (
    CapacityError,
    CapturingError,
    ContextLostError,
    DeviceError,
    Error,
    ForkedError,
    InvalidArgumentError,
    InvalidHandleError,
    InvalidIndexError,
    LimitExceededError,
    MismatchError,
    NotReadyError,
    NotSupportedError,
    OutOfMemoryError,
    SizeOverflowError,
    StaleHandleError,
    WrongKindError,
)
from .image import Image, as_image
from .layout import TensorLayout
from .memory import Memory
from .operators import (
    convertto,
    convertto_into,
    flip,
    flip_into,
    normalize,
    normalize_into,
    pillowresize,
    pillowresize_into,
    reformat,
    reformat_into,
)
from .stream import Stream, as_stream
from .tensor import Tensor, as_tensor, reshape, upload
from .types import ColorMatrix, Format, Interp, NormalizeFlags, Round, ThreadScope, Type

__all__ = [
    "CacheStats",
    "CapacityError",
    "CapturingError",
    "ColorMatrix",
    "ContextLostError",
    "Convert",
    "DeviceError",
    "DeviceInfo",
    "Error",
    "Export",
    "ForkedError",
    "Format",
    "Image",
    "ImageBatchVarShape",
    "Interp",
    "InvalidArgumentError",
    "InvalidHandleError",
    "InvalidIndexError",
    "LimitExceededError",
    "Memory",
    "MismatchError",
    "Normalize",
    "NormalizeFlags",
    "NotReadyError",
    "NotSupportedError",
    "OutOfMemoryError",
    "Round",
    "SizeOverflowError",
    "StaleHandleError",
    "Stream",
    "Tensor",
    "TensorBatch",
    "TensorLayout",
    "ThreadScope",
    "Type",
    "WrongKindError",
    "__version__",
    "as_image",
    "as_images",
    "as_stream",
    "as_tensor",
    "as_tensors",
    "backend",
    "cache_size",
    "cache_stats",
    "clear_cache",
    "convertto",
    "convertto_into",
    "cuda",
    "current_cache_size_inbytes",
    "current_device",
    "device_count",
    "device_info",
    "flip",
    "flip_into",
    "get_cache_limit_inbytes",
    "internal",
    "normalize",
    "normalize_into",
    "pillowresize",
    "pillowresize_into",
    "preprocess",
    "preprocess_into",
    "reformat",
    "reformat_into",
    "reset_peak_cache_stats",
    "reshape",
    "set_cache_limit_inbytes",
    "set_device",
    "synchronize",
    "trim_cache",
    "upload",
]
