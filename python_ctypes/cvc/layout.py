"""Layouts: which label (N, H, W, C, …) each dimension of a tensor carries."""

from __future__ import annotations

from typing import ClassVar

_NAMED = (
    "N C F D H W WC CW NW NWC NCW HW NHW FHW NFHW CHW NCHW HWC NHWC CFHW FCHW FHWC NCFHW NFCHW "
    "NFHWC DHW NDHW CDHW DHWC NCDHW NDHWC FDHW NFDHW CFDHW FCDHW FDHWC NCFDHW NFCDHW NFDHWC"
).split()


class TensorLayout(str):
    """The labels of a tensor's dimensions, outermost first; a `str`, so 'NHWC' serves as well.

    The usual ones are attributes (`TensorLayout.NHWC`); `TensorLayout("abc")` makes any other of
    one to 15 one-character labels. `TensorLayout.NONE` is the empty one: no layout.
    """

    __slots__ = ()

    NONE: ClassVar[TensorLayout]
    N: ClassVar[TensorLayout]
    C: ClassVar[TensorLayout]
    F: ClassVar[TensorLayout]
    D: ClassVar[TensorLayout]
    H: ClassVar[TensorLayout]
    W: ClassVar[TensorLayout]
    WC: ClassVar[TensorLayout]
    CW: ClassVar[TensorLayout]
    NW: ClassVar[TensorLayout]
    NWC: ClassVar[TensorLayout]
    NCW: ClassVar[TensorLayout]
    HW: ClassVar[TensorLayout]
    NHW: ClassVar[TensorLayout]
    FHW: ClassVar[TensorLayout]
    NFHW: ClassVar[TensorLayout]
    CHW: ClassVar[TensorLayout]
    NCHW: ClassVar[TensorLayout]
    HWC: ClassVar[TensorLayout]
    NHWC: ClassVar[TensorLayout]
    CFHW: ClassVar[TensorLayout]
    FCHW: ClassVar[TensorLayout]
    FHWC: ClassVar[TensorLayout]
    NCFHW: ClassVar[TensorLayout]
    NFCHW: ClassVar[TensorLayout]
    NFHWC: ClassVar[TensorLayout]
    DHW: ClassVar[TensorLayout]
    NDHW: ClassVar[TensorLayout]
    CDHW: ClassVar[TensorLayout]
    DHWC: ClassVar[TensorLayout]
    NCDHW: ClassVar[TensorLayout]
    NDHWC: ClassVar[TensorLayout]
    FDHW: ClassVar[TensorLayout]
    NFDHW: ClassVar[TensorLayout]
    CFDHW: ClassVar[TensorLayout]
    FCDHW: ClassVar[TensorLayout]
    FDHWC: ClassVar[TensorLayout]
    NCFDHW: ClassVar[TensorLayout]
    NFCDHW: ClassVar[TensorLayout]
    NFDHWC: ClassVar[TensorLayout]

    def __repr__(self) -> str:
        return f"cvc.TensorLayout({str(self)!r})"


TensorLayout.NONE = TensorLayout("")
for _name in _NAMED:
    setattr(TensorLayout, _name, TensorLayout(_name))
