// The C++17 layer over cvc.h: owning handles, exceptions, scoped enumerations and value-returning operators,
// header only.
//
// Every call that fails throws cvc::Error, whose text names the argument, its value and what was expected; a
// failed call changes nothing. Destructors never throw and never wait for the device: memory whose work is
// still queued is kept by the cache until that work is done.
//
// Cache, Tensor, Image, ImageBatch and TensorBatch are references that are counted by the library: a copy is
// a second reference to the same object, and the object returns to its cache when the last one ends. Stream,
// Event, Memory, Latch and Access own a thing that cannot be shared, and move only. A default-constructed or
// moved-from one is empty.
//
// Threads: every function may be called from any thread. One C++ variable follows the rule of
// std::shared_ptr: it may not be assigned in one thread while another uses it; copies of it may.
//
// Streams: wherever a `cvc_stream_t stream` is asked for, pass a cvc::Stream, a cudaStream_t or CUstream, or
// nullptr for the legacy default stream. Work is queued on it and the call returns at once.
#ifndef CVC_HPP
#define CVC_HPP

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201703L
#error "cvc.hpp needs C++17"
#endif

#include "cvc/memory.hpp"
#include "cvc/preprocess.hpp" // and with it types.hpp, stream.hpp, object.hpp and operator.hpp

#endif
