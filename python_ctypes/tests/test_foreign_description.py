"""What producers of arrays say of their memory is checked before anything reads it."""

from __future__ import annotations

import numpy as np
import pytest
from support import output_of

import cvc
from cvc import _foreign

VALUES = np.arange(6, dtype=np.uint8).reshape(2, 3)
ADDRESS = VALUES.__array_interface__["data"][0]


class Interface:
    """An object that has an array interface and nothing else."""

    def __init__(self, **changes):
        interface = {**VALUES.__array_interface__, **changes}
        self.__array_interface__ = {
            key: value for key, value in interface.items() if value is not ...
        }


ENTRANCES = [cvc.upload, cvc.Image]
if cvc.backend() == "host":
    ENTRANCES += [cvc.as_tensor, cvc.as_image]
every_entrance = pytest.mark.parametrize("enter", ENTRANCES, ids=lambda enter: enter.__name__)


@every_entrance
def test_a_good_interface(enter):
    result = enter(Interface(strides=(3, 1), data=(np.int64(ADDRESS), False)))
    assert np.array_equal(result.cpu(), VALUES)


@every_entrance
@pytest.mark.parametrize(
    "changes, message",
    [
        ({"strides": (3,)}, "1 strides, expected 2"),
        ({"strides": ()}, "0 strides, expected 2"),
        ({"strides": (1, 3, 1)}, "3 strides, expected 2"),
        ({"strides": (2.5, 1)}, "float"),
        ({"strides": 3}, "int"),
        ({"strides": (2**63, 1)}, r"strides\[0\] is 9223372036854775808"),
        ({"strides": (3, -(2**63) - 1)}, r"strides\[1\] is -9223372036854775809"),
        ({"strides": (10**9999, 1)}, r"strides\[0\] is an integer of 33216 bits"),
        ({"strides": (2**62, 1), "shape": (9, 3)}, "address"),
        ({"strides": (-(2**62), 1)}, "address"),
        ({"shape": (2.5, 3)}, "float"),
        ({"shape": ("2", 3)}, "str"),
        ({"shape": (-2, 3)}, r"shape\[0\] is -2"),
        ({"shape": (2**63, 3)}, r"shape\[0\] is 9223372036854775808"),
        ({"shape": ...}, "shape"),
        ({"shape": None}, "NoneType"),
        ({"typestr": ""}, "typestr is ''"),
        ({"typestr": ">u2"}, "typestr is '>u2'"),
        ({"typestr": "|V1"}, "V1"),
        ({"typestr": None}, "typestr is None"),
        ({"data": (-5, False)}, "address is -5"),
        ({"data": (2**64 + 4096, False)}, f"address is {2**64 + 4096}"),
        ({"data": (2**64 - 3, False)}, f"address is {2**64 - 3}"),
        ({"data": (10**9999, False)}, "address is an integer"),
        ({"data": (1.5, False)}, "float"),
        ({"data": ("x", False)}, "str"),
        ({"data": b"ab"}, "data is a bytes"),
        ({"data": (4096,)}, "unpack"),
        ({"data": ...}, "data"),
        ({"mask": VALUES > 2}, "mask"),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_a_bad_interface(enter, changes, message):
    if "strides" not in changes:
        changes = {**changes, "strides": None}
    with pytest.raises(cvc.Error, match=message):
        enter(Interface(**changes))


def test_strides_that_are_too_few_read_nothing():
    # In a process of its own, since what is read otherwise lies anywhere.
    program = """
        import numpy as np, cvc
        class Interface:
            def __init__(self, array, **changes):
                self.array = array
                self.__array_interface__ = {**array.__array_interface__, **changes}
        for shape in ((4096, 4096), (1,) * 8 + (4096,)):
            try:
                cvc.upload(Interface(np.zeros(shape, np.uint8), strides=(1 << 40,)))
            except cvc.InvalidArgumentError:
                print("refused")
    """
    assert output_of(program) == "refused\nrefused\n"


@pytest.mark.parametrize("stream", [0, -1, 2**64, 1 << 999], ids=int.bit_length)
def test_a_bad_stream_of_device_memory(stream):
    with pytest.raises(cvc.InvalidHandleError, match="stream is"):
        _foreign._from_interface(
            VALUES, {**VALUES.__array_interface__, "stream": stream}, on_host=False
        )


class Exported:
    """Exports an array by DLPack alone, after changing what the struct says."""

    def __init__(self, array, **changes):
        self.capsule = array.__dlpack__(max_version=(1, 0))
        managed = _foreign.DLManagedTensorVersioned.from_address(
            _foreign.capsule_pointer(self.capsule, b"dltensor_versioned")
        )
        self.tensor = managed.dl_tensor
        for name, value in changes.items():
            setattr(self.tensor, name, value)

    def __dlpack__(self, **keywords):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


@every_entrance
def test_dlpack_that_says_what_cannot_be(enter):
    assert np.array_equal(enter(Exported(VALUES.copy())).cpu(), VALUES)
    for offset in (2**64 - 1, 2**64 - ADDRESS, 2**64 - ADDRESS - VALUES.nbytes + 1):
        with pytest.raises(cvc.InvalidArgumentError, match="address is"):
            enter(Exported(VALUES, byte_offset=offset))
    source = Exported(VALUES.copy())
    source.tensor.shape[0] = -2
    with pytest.raises(cvc.InvalidArgumentError, match=r"shape\[0\] is -2"):
        enter(source)
    source = Exported(VALUES.astype(np.uint16))
    if source.tensor.strides:
        source.tensor.strides[0] = 2**62
        with pytest.raises(cvc.InvalidArgumentError, match=r"strides\[0\] is 9223372036854775808"):
            enter(source)
    source = Exported(VALUES.copy())
    source.tensor.ndim = -1
    with pytest.raises(BufferError, match="-1 dimensions"):
        enter(source)
    source.tensor.ndim = 2


@every_entrance
def test_masked_arrays(enter):
    masked = np.ma.array(VALUES, mask=VALUES > 2)
    with pytest.raises(cvc.NotSupportedError, match="masked"):
        enter(masked)
    with pytest.raises(cvc.NotSupportedError, match="masked"):
        enter([masked] if "mage" in enter.__name__ else masked[:1])
    assert np.array_equal(enter(masked.filled(0)).cpu(), VALUES * (VALUES <= 2))
    assert np.array_equal(enter(np.ma.array(VALUES)).cpu(), VALUES)
