// The host build of the pillow_resize kernel. A work item is some output rows of one image, with all its
// channels.
//
// Items count those of image 0 of the first geometry, then those of its other images, then those of the next
// geometry. A task computes what its rows need of the first pass, so neighbouring tasks repeat a few rows'
// work.
#include "resize_band.h"

namespace cvc_resize_host {
namespace {

picture_side side_of(const cvc_view &view, int64_t image) {
  return picture_side{reinterpret_cast<unsigned char *>(cvc_view_address(view, image, 0, 0, 0)),
                      view.stride_c, view.stride_h, view.stride_w};
}

void rows_of_picture(const picture &whole, bool nearest, isa level, int begin, int end) {
  if (nearest) {
    nearest_band(whole, begin, end);
    return;
  }
  // Rows of one channel without gaps on both sides: each plane is a picture of its own.
  const int64_t bytes = static_cast<int64_t>(element_bytes(whole.kind));
  const bool planar =
      whole.channels > 1 && !whole.premultiply && whole.src.stride_w == bytes && whole.dst.stride_w == bytes;
  if (!planar) {
    resize_band(whole, level, begin, end);
    return;
  }
  for (int c = 0; c < whole.channels; ++c) {
    picture plane = whole;
    plane.channels = 1;
    plane.src.base += c * whole.src.stride_c;
    plane.dst.base += c * whole.dst.stride_c;
    resize_band(plane, level, begin, end);
  }
}

// The first row of an image's item.
int row_of_item(const cvc_resize_image &image, int64_t item) {
  return static_cast<int>(item * image.dst_height / image.items);
}

void resize_items(const cvc_resize_params &params, int64_t begin, int64_t end) {
  const isa level = usable_isa();
  const bool nearest = (params.flags & cvc_resize_nearest) != 0;
  int64_t first_item = 0;
  for (int g = 0; g < params.image_count && first_item < end; ++g) {
    const cvc_resize_image &image = params.images[g];
    const int64_t items = static_cast<int64_t>(image.items) * params.batch;
    const int64_t to = end - first_item < items ? end - first_item : items;
    picture work{picture_side{},
                 picture_side{},
                 image.src_width,
                 image.dst_width,
                 static_cast<int>(params.channels),
                 params.kind,
                 (params.flags & cvc_resize_premultiply) != 0,
                 image.vertical_first != 0,
                 cvc_resize_horizontal(image),
                 cvc_resize_vertical(image)};
    int64_t item = begin > first_item ? begin - first_item : 0;
    while (item < to) {
      const int64_t n = item / image.items;
      const int64_t first = n * image.items;
      const int64_t item_end = to - first < image.items ? to : first + image.items;
      work.src = side_of(image.src, n);
      work.dst = side_of(image.dst, n);
      rows_of_picture(work, nearest, level, row_of_item(image, item - first),
                      row_of_item(image, item_end - first));
      item = item_end;
    }
    first_item += items;
  }
}

} // namespace
} // namespace cvc_resize_host

extern "C" void cvc_host_resize(const void *params, int64_t begin, int64_t end) {
  cvc_resize_host::resize_items(*static_cast<const cvc_resize_params *>(params), begin, end);
}
