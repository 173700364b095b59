// The strided view of pixels that every operator's parameter block holds, and the function qualifier for both
// builds.
#ifndef CVC_VIEW_CUH
#define CVC_VIEW_CUH

#if defined(__CUDACC__)
#define CVC_HD __host__ __device__
#else
#define CVC_HD
#endif

// Where element (n, c, h, w) of a batch of planes or interleaved images lies: at `data` plus the sum of the
// index times its stride. Strides are in bytes and may be zero or negative; what they and the address are
// multiples of stands in src/op/view.rs.
struct cvc_view {
  unsigned long long data;
  long long stride_n;
  long long stride_c;
  long long stride_h;
  long long stride_w;
};

CVC_HD inline unsigned long long cvc_view_address(const cvc_view &view, long long n, long long c, long long h,
                                                  long long w) {
  return view.data + static_cast<unsigned long long>(n * view.stride_n + c * view.stride_c +
                                                     h * view.stride_h + w * view.stride_w);
}

// Whether all rows of all planes begin at a multiple of `bytes`, a power of two. Strides of extents of 1 do
// not count.
CVC_HD inline bool cvc_view_is_aligned(const cvc_view &view, long long images, long long channels,
                                       long long height, long long bytes) {
  const unsigned long long bits = view.data |
                                  static_cast<unsigned long long>(images > 1 ? view.stride_n : 0) |
                                  static_cast<unsigned long long>(channels > 1 ? view.stride_c : 0) |
                                  static_cast<unsigned long long>(height > 1 ? view.stride_h : 0);
  return (bits & static_cast<unsigned long long>(bytes - 1)) == 0;
}

static_assert(sizeof(cvc_view) == 40, "the Rust mirror has this size");

#endif
