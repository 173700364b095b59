// The checks of the fused preprocess kernel and of NV12 to RGB.
#ifndef CVC_PREPROCESS_CHECK_H
#define CVC_PREPROCESS_CHECK_H

#include "check_support.h"

namespace {

int64_t fused_launches = 0;

// Kinds of at most 4 bytes, which the fused kernel computes with; U32 is not normalized.
uint32_t draw_small_kind(bool normalized) {
  static const uint32_t kinds[] = {cvc_kind_u8,  cvc_kind_s8,  cvc_kind_u16, cvc_kind_s16,
                                   cvc_kind_s32, cvc_kind_f16, cvc_kind_f32, cvc_kind_u32};
  return chance(2) ? static_cast<uint32_t>(cvc_kind_f32) : kinds[draw(0, normalized ? 6 : 7)];
}

cvc_preprocess_finish draw_finish() {
  cvc_preprocess_finish finish{};
  finish.normalizes = chance(2);
  finish.dst_kind = cvc_kind_u8;
  if (chance(2)) {
    finish.convert_kind = draw_small_kind(finish.normalizes != 0);
    finish.dst_kind = finish.convert_kind;
    finish.rounding = static_cast<uint32_t>(draw(0, 1));
    finish.alpha = chance(3) ? 1.0 : static_cast<double>(draw(-3000, 3000)) / 997.0;
    finish.beta = chance(3) ? 0.0 : static_cast<double>(draw(-3000, 3000)) / 31.0;
  }
  if (finish.normalizes != 0) {
    finish.normalize = draw_values();
    finish.dst_kind = draw_small_kind(true);
  }
  return finish;
}

// Rows, columns or both reversed, as a flip does.
void turn(cvc_view &view, int64_t height, int64_t width) {
  if (chance(3)) {
    view.data += static_cast<unsigned long long>((height - 1) * view.stride_h);
    view.stride_h = -view.stride_h;
  }
  if (chance(3)) {
    view.data += static_cast<unsigned long long>((width - 1) * view.stride_w);
    view.stride_w = -view.stride_w;
  }
}

void check_preprocess() {
  static const filter filters[] = {filter::linear, filter::cubic, filter::lanczos, filter::hamming,
                                   filter::box};
  static const int sizes[][4] = {
      {320, 180, 64, 64}, {97, 61, 224, 131}, {640, 360, 127, 71}, {50, 200, 33, 90}};
  cvc_preprocess_params params{};
  cvc_resize_params &resize = params.resize;
  resize.kind = cvc_kind_u8;
  resize.channels = static_cast<uint32_t>(chance(3) ? draw(1, 4) : 3);
  resize.image_count = chance(4) ? static_cast<int32_t>(draw(2, 4)) : 1;
  resize.batch = resize.image_count == 1 ? static_cast<int32_t>(draw(1, 3)) : 1;
  params.finish = draw_finish();
  params.finish.swaps = resize.channels >= 3 && chance(2);
  factor base, scale;
  base.draw_one(extents{1, resize.channels, 1, 1}, false);
  scale.draw_one(extents{1, resize.channels, 1, 1}, false);
  const filter kind = pick(filters);
  const size_t count = static_cast<size_t>(resize.image_count);
  const int64_t bytes = cvc_kind_bytes(params.finish.dst_kind);
  std::vector<twin> sources(count), results(count), tables(2 * count);
  std::vector<layout> from, to;
  int64_t items = 0;
  std::string what = "filter " + std::to_string(static_cast<int>(kind)) + " channels " +
                     std::to_string(resize.channels) + " batch " + std::to_string(resize.batch) +
                     " convert " + std::to_string(params.finish.convert_kind) + " normalize " +
                     std::to_string(params.finish.normalizes) + " to " +
                     std::to_string(params.finish.dst_kind);
  for (size_t i = 0; i < count; ++i) {
    cvc_resize_image &image = resize.images[i];
    const int *const size = sizes[draw(0, 3)];
    const int vary = static_cast<int>(draw(0, 9));
    image.src_width = size[0] + vary;
    image.src_height = size[1] + vary;
    image.dst_width = size[2] + static_cast<int>(draw(0, 3));
    image.dst_height = size[3] + static_cast<int>(draw(0, 3));
    image.items = static_cast<int32_t>(draw(1, image.dst_height));
    const int64_t channels = resize.channels;
    const int style = chance(3) ? 1 : 0;
    from.push_back(
        draw_layout(extents{resize.batch, channels, image.src_height, image.src_width}, 1, style, false));
    to.push_back(draw_layout(extents{resize.batch, channels, image.dst_height, image.dst_width}, bytes,
                             static_cast<int>(draw(0, 2)), false));
    turn(to.back().view, image.dst_height, image.dst_width);
    sources[i].reserve(static_cast<size_t>(from.back().bytes));
    sources[i].fill_random();
    sources[i].upload();
    results[i].reserve(static_cast<size_t>(to.back().bytes));
    results[i].poison();
    results[i].upload();
    int most[2];
    for (int axis = 0; axis < 2; ++axis) {
      const resize_table table(axis == 0 ? image.src_width : image.src_height,
                               axis == 0 ? image.dst_width : image.dst_height, kind, true);
      twin &memory = tables[2 * i + static_cast<size_t>(axis)];
      most[axis] = table.header().max_count;
      memory.host = table.bytes();
      memory.upload();
    }
    image.src = at(from[i], sources[i].host.data());
    image.dst = at(to[i], results[i].host.data());
    cvc_plan_resize(&resize, static_cast<int32_t>(i), most[0], most[1], 1, block_shared_bytes());
    if (!cvc_resize_is_tiled(image.tiling)) {
      return;
    }
    items += static_cast<int64_t>(image.items) * resize.batch;
    what += " " + std::to_string(image.src_width) + "x" + std::to_string(image.src_height) + "->" +
            std::to_string(image.dst_width) + "x" + std::to_string(image.dst_height) + " " + from[i].name +
            " -> " + to[i].name;
  }
  for (int side = 0; side < 2; ++side) {
    for (size_t i = 0; i < count; ++i) {
      cvc_resize_image &image = resize.images[i];
      image.src = at(from[i], side == 1 ? sources[i].device : sources[i].host.data());
      image.dst = at(to[i], side == 1 ? results[i].device : results[i].host.data());
      const auto address = [&](const twin &table) {
        return reinterpret_cast<uint64_t>(side == 1 ? table.device : table.host.data());
      };
      image.horizontal_table = address(tables[2 * i]);
      image.vertical_table = address(tables[2 * i + 1]);
    }
    params.finish.normalize.base = base.view(side == 1);
    params.finish.normalize.scale = scale.view(side == 1);
    if (side == 0) {
      cvc_host_preprocess(&params, 0, items);
    } else {
      launch_preprocess(params);
    }
  }
  ++fused_launches;
  for (size_t i = 0; i < count; ++i) {
    report("preprocess", what, results[i]);
  }
}

void check_nv12() {
  const extents size{draw(1, 3), 1, draw_size(), draw_size()};
  cvc_nv12_params params{};
  params.images = size.n;
  params.height = size.h;
  params.width = size.w;
  params.odd_x = static_cast<uint32_t>(draw(0, 1));
  params.odd_y = static_cast<uint32_t>(draw(0, 1));
  params.coefficients = cvc_nv12_coefficients{};
  params.coefficients.luma = static_cast<int32_t>(draw(1000000, 1300000));
  params.coefficients.luma_offset = chance(2) ? 16 : 0;
  params.coefficients.red_of_cr = static_cast<int32_t>(draw(1400000, 2000000));
  params.coefficients.green_of_cb = static_cast<int32_t>(draw(-500000, -100000));
  params.coefficients.green_of_cr = static_cast<int32_t>(draw(-900000, -400000));
  params.coefficients.blue_of_cb = static_cast<int32_t>(draw(1800000, 2300000));
  const layout luma = draw_layout(size, 1, 1, false);
  const layout chroma = draw_layout(extents{size.n, 2, size.h / 2 + 1, size.w / 2 + 1}, 1, 0, false);
  const layout rgb = draw_layout(extents{size.n, 3, size.h, size.w}, 1, static_cast<int>(draw(0, 2)), true);
  twin lumas, chromas, result;
  lumas.reserve(static_cast<size_t>(luma.bytes));
  lumas.fill_random();
  lumas.upload();
  chromas.reserve(static_cast<size_t>(chroma.bytes));
  chromas.fill_random();
  chromas.upload();
  result.reserve(static_cast<size_t>(rgb.bytes));
  result.poison();
  result.upload();
  for (int side = 0; side < 2; ++side) {
    params.luma = at(luma, side == 1 ? lumas.device : lumas.host.data());
    params.chroma = at(chroma, side == 1 ? chromas.device : chromas.host.data());
    params.dst = at(rgb, side == 1 ? result.device : result.host.data());
    if (side == 0) {
      cvc_host_nv12(&params, 0, size.n * size.h);
    } else {
      launch(cvc_nv12, params, cvc_nv12_blocks(params));
    }
  }
  report("nv12", text(size) + " -> " + rgb.name, result);
}

} // namespace

#endif
