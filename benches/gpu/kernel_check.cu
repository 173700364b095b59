// Compares the GPU build of every kernel with its host build, bit for bit, on random sizes, layouts, element
// types and alignments; whatever lies around the results has to stay as it was.
//
// kernel_check [cases of each kernel] [seed] [only this kernel]
#include "check_support.h"
#include "preprocess_check.h"

namespace {

// ---- Flip ----

void check_flip() {
  static const uint32_t element_sizes[] = {1, 1, 2, 4, 8, 16};
  const extents size = draw_extents(chance(10) ? 9 : 4);
  const uint32_t bytes = pick(element_sizes);
  const bool in_place = chance(4);
  const layout from = draw_layout(size, bytes, static_cast<int>(draw(0, 2)), true);
  const layout to =
      in_place ? from : draw_layout(size, bytes, chance(3) ? static_cast<int>(draw(0, 2)) : 0, true);
  twin src, dst;
  src.reserve(static_cast<size_t>(from.bytes));
  src.fill_random();
  src.upload();
  dst.reserve(static_cast<size_t>(to.bytes));
  dst.poison();
  if (in_place) {
    dst.fill_random();
  }
  dst.upload();
  const int32_t code = static_cast<int32_t>(draw(-1, 1));
  cvc_flip_params params{};
  params.images = size.n;
  params.channels = size.c;
  params.height = size.h;
  params.width = size.w;
  params.element_bytes = bytes;
  params.flip_code = code;
  params.in_place = in_place;
  params.src = at(from, in_place ? dst.host.data() : src.host.data());
  params.dst = at(to, dst.host.data());
  cvc_host_flip(&params, 0, size.n * cvc_flip_rows(params));
  params.src = at(from, in_place ? dst.device : src.device);
  params.dst = at(to, dst.device);
  launch_flip(params);
  report("flip",
         text(size) + " of " + std::to_string(bytes) + " code " + std::to_string(code) + " " + from.name +
             " -> " + to.name + (in_place ? " in place" : ""),
         dst);
}

void check_flip_var_shape() {
  static const uint32_t element_sizes[] = {1, 2, 4, 8, 16};
  const int count = static_cast<int>(draw(1, cvc_flip_max_images));
  std::vector<twin> sources(static_cast<size_t>(count)), results(static_cast<size_t>(count));
  twin codes;
  codes.reserve(static_cast<size_t>(8 * count));
  std::vector<layout> from, to;
  cvc_flip_var_shape_params params{};
  params.count = count;
  params.code_stride = 8;
  int64_t items = 0;
  for (int i = 0; i < count; ++i) {
    const extents size{1, draw(1, 4), draw(1, 70), chance(2) ? 16 * draw(1, 9) : draw(1, 70)};
    const int32_t code = static_cast<int32_t>(draw(-1, 2));
    memcpy(codes.host.data() + 8 * i, &code, 4);
    cvc_flip_image &image = params.images[i];
    image.element_bytes = pick(element_sizes);
    image.first_item = items;
    image.width = static_cast<int32_t>(size.w);
    image.height = static_cast<int32_t>(size.h);
    image.channels = static_cast<int32_t>(size.c);
    image.code_index = i;
    image.in_place = chance(5);
    items += size.h;
    from.push_back(draw_layout(size, image.element_bytes, static_cast<int>(draw(0, 1)), false));
    to.push_back(image.in_place != 0
                     ? from.back()
                     : draw_layout(size, image.element_bytes, static_cast<int>(draw(0, 1)), false));
    const size_t at_i = static_cast<size_t>(i);
    sources[at_i].reserve(static_cast<size_t>(from.back().bytes));
    sources[at_i].fill_random();
    sources[at_i].upload();
    results[at_i].reserve(static_cast<size_t>(to.back().bytes));
    results[at_i].fill_random();
    results[at_i].upload();
  }
  codes.upload();
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < count; ++i) {
      const size_t at_i = static_cast<size_t>(i);
      twin &source = params.images[i].in_place != 0 ? results[at_i] : sources[at_i];
      params.images[i].src = at(from[at_i], side == 0 ? source.host.data() : source.device);
      params.images[i].dst = at(to[at_i], side == 0 ? results[at_i].host.data() : results[at_i].device);
    }
    params.codes = reinterpret_cast<unsigned long long>(side == 0 ? codes.host.data() : codes.device);
    if (side == 0) {
      cvc_host_flip_var_shape(&params, 0, items);
    } else {
      launch_flip_var_shape(params);
    }
  }
  for (int i = 0; i < count; ++i) {
    report("flip_var_shape", std::to_string(i) + " of " + std::to_string(count),
           results[static_cast<size_t>(i)]);
  }
}

void check_convert_to() {
  extents size = draw_extents(chance(10) ? 7 : 4);
  cvc_convert_to_params params{};
  const bool common = chance(3);
  params.src_kind = common ? (chance(2) ? cvc_kind_u8 : cvc_kind_f32) : static_cast<uint32_t>(draw(1, 11));
  params.dst_kind = common ? (chance(2) ? cvc_kind_u8 : cvc_kind_f32) : static_cast<uint32_t>(draw(1, 11));
  params.rounding = static_cast<uint32_t>(draw(0, 1));
  params.images = size.n;
  params.channels = size.c;
  params.height = size.h;
  params.width = size.w;
  params.alpha = chance(3) ? 1.0 : static_cast<double>(draw(-3000, 3000)) / 997.0;
  params.beta = chance(3) ? 0.0 : static_cast<double>(draw(-3000, 3000)) / 31.0;
  params.alpha_float = static_cast<float>(params.alpha);
  params.beta_float = static_cast<float>(params.beta);
  const int64_t src_bytes = cvc_kind_bytes(params.src_kind), dst_bytes = cvc_kind_bytes(params.dst_kind);
  const bool in_place = src_bytes == dst_bytes && chance(3);
  const int kind = static_cast<int>(draw(0, 2));
  const layout from = draw_layout(size, src_bytes, kind, true);
  const layout to =
      in_place ? from : draw_layout(size, dst_bytes, chance(4) ? static_cast<int>(draw(0, 2)) : kind, true);
  twin src, dst;
  src.reserve(static_cast<size_t>(from.bytes));
  fill_values(src, params.src_kind);
  src.upload();
  dst.reserve(static_cast<size_t>(to.bytes));
  dst.poison();
  if (in_place) {
    fill_values(dst, params.src_kind);
  }
  dst.upload();
  params.src = at(from, in_place ? dst.host.data() : src.host.data());
  params.dst = at(to, dst.host.data());
  cvc_host_convert_to(&params, 0, size.n * size.h);
  params.src = at(from, in_place ? dst.device : src.device);
  params.dst = at(to, dst.device);
  launch_convert_to(params);
  report("convert_to",
         text(size) + " kinds " + std::to_string(params.src_kind) + " -> " + std::to_string(params.dst_kind) +
             " rounding " + std::to_string(params.rounding) + " " + from.name + " -> " + to.name,
         dst);
}

// ---- Normalize ----

void check_normalize() {
  const extents size = draw_extents(chance(10) ? 7 : 4);
  cvc_normalize_params params{};
  params.values = draw_values();
  params.images = size.n;
  params.channels = size.c;
  params.height = size.h;
  params.width = size.w;
  const bool per_pixel = chance(3);
  factor base, scale;
  base.draw_one(size, per_pixel);
  scale.draw_one(size, per_pixel);
  const int64_t src_bytes = cvc_kind_bytes(params.values.src_kind),
                dst_bytes = cvc_kind_bytes(params.values.dst_kind);
  const bool in_place = src_bytes == dst_bytes && chance(3);
  const int kind = static_cast<int>(draw(0, 2));
  const layout from = draw_layout(size, src_bytes, kind, true);
  const layout to =
      in_place ? from : draw_layout(size, dst_bytes, chance(4) ? static_cast<int>(draw(0, 2)) : kind, true);
  twin src, dst;
  src.reserve(static_cast<size_t>(from.bytes));
  fill_values(src, params.values.src_kind);
  src.upload();
  dst.reserve(static_cast<size_t>(to.bytes));
  dst.poison();
  if (in_place) {
    fill_values(dst, params.values.src_kind);
  }
  dst.upload();
  for (int side = 0; side < 2; ++side) {
    params.values.base = base.view(side == 1);
    params.values.scale = scale.view(side == 1);
    twin &source = in_place ? dst : src;
    params.src = at(from, side == 1 ? source.device : source.host.data());
    params.dst = at(to, side == 1 ? dst.device : dst.host.data());
    if (side == 0) {
      cvc_host_normalize(&params, 0, size.n * size.h);
    } else {
      launch_normalize(params);
    }
  }
  report("normalize",
         text(size) + " kinds " + std::to_string(params.values.src_kind) + " -> " +
             std::to_string(params.values.dst_kind) + " " + from.name + " -> " + to.name +
             (base.is_tensor ? " base tensor" : "") + (scale.is_tensor ? " scale tensor" : "") +
             (per_pixel ? " per pixel" : ""),
         dst);
}

void check_normalize_var_shape() {
  const int count = static_cast<int>(draw(1, cvc_normalize_max_images));
  const int64_t channels = draw(1, 4);
  cvc_normalize_var_shape_params params{};
  params.values = draw_values();
  params.count = count;
  factor base, scale;
  base.draw_one(extents{count, channels, 1, 1}, false);
  scale.draw_one(extents{count, channels, 1, 1}, false);
  std::vector<twin> sources(static_cast<size_t>(count)), results(static_cast<size_t>(count));
  std::vector<layout> from, to;
  int64_t items = 0;
  for (int i = 0; i < count; ++i) {
    const extents size{1, draw(1, channels), draw(1, 60), draw_size()};
    cvc_normalize_image &image = params.images[i];
    image.first_item = items;
    image.width = static_cast<int32_t>(size.w);
    image.height = static_cast<int32_t>(size.h);
    image.channels = static_cast<int32_t>(size.c);
    image.first_channel = static_cast<int32_t>(draw(0, channels - size.c));
    image.image_index = i;
    items += size.h;
    const int kind = static_cast<int>(draw(0, 1));
    from.push_back(draw_layout(size, cvc_kind_bytes(params.values.src_kind), kind, false));
    to.push_back(draw_layout(size, cvc_kind_bytes(params.values.dst_kind), kind, false));
    const size_t at_i = static_cast<size_t>(i);
    sources[at_i].reserve(static_cast<size_t>(from.back().bytes));
    fill_values(sources[at_i], params.values.src_kind);
    sources[at_i].upload();
    results[at_i].reserve(static_cast<size_t>(to.back().bytes));
    results[at_i].poison();
    results[at_i].upload();
  }
  for (int side = 0; side < 2; ++side) {
    for (int i = 0; i < count; ++i) {
      const size_t at_i = static_cast<size_t>(i);
      params.images[i].src = at(from[at_i], side == 0 ? sources[at_i].host.data() : sources[at_i].device);
      params.images[i].dst = at(to[at_i], side == 0 ? results[at_i].host.data() : results[at_i].device);
    }
    params.values.base = base.view(side == 1);
    params.values.scale = scale.view(side == 1);
    if (side == 0) {
      cvc_host_normalize_var_shape(&params, 0, items);
    } else {
      launch_normalize_var_shape(params);
    }
  }
  for (int i = 0; i < count; ++i) {
    report("normalize_var_shape", std::to_string(i) + " of " + std::to_string(count),
           results[static_cast<size_t>(i)]);
  }
}

// ---- Reformat ----

void check_reformat() {
  static const uint32_t element_sizes[] = {1, 1, 2, 4, 4, 8, 16};
  const extents size = draw_extents(chance(10) ? 9 : 4);
  const uint32_t bytes = pick(element_sizes);
  const int kind = static_cast<int>(draw(0, 2));
  const layout from = draw_layout(size, bytes, kind, true);
  const layout to = draw_layout(size, bytes,
                                chance(3)   ? static_cast<int>(draw(0, 2))
                                : kind == 1 ? 0
                                            : 1,
                                true);
  twin src, dst;
  src.reserve(static_cast<size_t>(from.bytes));
  src.fill_random();
  src.upload();
  dst.reserve(static_cast<size_t>(to.bytes));
  dst.poison();
  dst.upload();
  cvc_reformat_params params{};
  params.images = size.n;
  params.channels = size.c;
  params.height = size.h;
  params.width = size.w;
  params.element_bytes = bytes;
  params.src = at(from, src.host.data());
  params.dst = at(to, dst.host.data());
  cvc_host_reformat(&params, 0, size.n * size.h);
  params.src = at(from, src.device);
  params.dst = at(to, dst.device);
  launch_reformat(params);
  report("reformat", text(size) + " of " + std::to_string(bytes) + " " + from.name + " -> " + to.name, dst);
}

// ---- Resize ----

struct resize_case {
  int in_width, in_height, out_width, out_height;
};

resize_case draw_resize() {
  static const resize_case extremes[] = {{65535, 1, 1, 1},     {1, 65535, 1, 1},       {65535, 1, 300, 7},
                                         {1, 65535, 5, 301},   {1, 1, 257, 131},       {2000, 3, 2, 900},
                                         {3, 1500, 800, 2},    {1920, 1080, 224, 224}, {640, 360, 427, 240},
                                         {320, 180, 640, 360}, {700, 500, 31, 29},     {1, 65535, 1, 65535}};
  static const resize_case real[] = {{1920, 1080, 224, 224}, {640, 360, 1280, 720}, {640, 480, 224, 224},
                                     {640, 360, 427, 240},   {1280, 720, 640, 360}, {500, 375, 299, 299},
                                     {320, 180, 640, 360},   {320, 240, 1024, 768}, {256, 256, 224, 224},
                                     {1024, 600, 96, 64},    {480, 270, 1440, 810}, {720, 480, 480, 320}};
  if (chance(12)) {
    return pick(extremes);
  }
  if (chance(3)) {
    return pick(real);
  }
  resize_case drawn{static_cast<int>(draw_size()), static_cast<int>(draw_size()),
                    static_cast<int>(draw_size()), static_cast<int>(draw_size())};
  if (chance(8)) {
    drawn.out_width = drawn.in_width;
  }
  if (chance(8)) {
    drawn.out_height = drawn.in_height;
  }
  return drawn;
}

int64_t tiled_images = 0, sampled_images = 0;

void check_resize() {
  static const filter filters[] = {filter::linear,  filter::cubic,   filter::lanczos,
                                   filter::hamming, filter::box,     filter::linear,
                                   filter::cubic,   filter::lanczos, filter::nearest};
  cvc_resize_params params{};
  // Mostly what is computed in tiles: U8 of three channels side by side, packed or aligned to 16.
  const bool plain = !chance(4);
  const bool is_u8 = plain || !chance(4);
  const filter kind = plain ? filters[draw(0, 7)] : pick(filters);
  const bool nearest = kind == filter::nearest;
  params.kind = is_u8 ? static_cast<uint32_t>(cvc_kind_u8) : pick(normalized_kinds);
  if (nearest && chance(4)) {
    params.kind = cvc_kind_u32;
  }
  params.channels = static_cast<uint32_t>(draw(1, 4));
  if (plain || chance(3)) {
    params.channels = 3;
  }
  if (nearest) {
    params.flags = cvc_resize_nearest;
  } else if (params.kind == cvc_kind_u8 && params.channels % 2 == 0 && chance(4)) {
    params.flags = cvc_resize_premultiply;
  }
  params.image_count = chance(4) ? static_cast<int32_t>(draw(2, 5)) : 1;
  params.batch = params.image_count == 1 ? static_cast<int32_t>(draw(1, 3)) : 1;
  const int64_t bytes = cvc_kind_bytes(params.kind);
  const size_t count = static_cast<size_t>(params.image_count);
  std::vector<twin> sources(count), results(count), tables(2 * count);
  std::vector<layout> from, to;
  std::vector<int> most;
  std::string what = "kind " + std::to_string(params.kind) + " filter " +
                     std::to_string(static_cast<int>(kind)) + " channels " + std::to_string(params.channels) +
                     " batch " + std::to_string(params.batch) + " flags " + std::to_string(params.flags);
  for (size_t i = 0; i < count; ++i) {
    const resize_case drawn = draw_resize();
    cvc_resize_image &image = params.images[i];
    image.src_width = drawn.in_width;
    image.src_height = drawn.in_height;
    image.dst_width = drawn.out_width;
    image.dst_height = drawn.out_height;
    image.items = drawn.out_height;
    image.vertical_first = !plain && chance(6) ? 1
                                               : vertical_comes_first(drawn.in_width, drawn.in_height,
                                                                      drawn.out_width, drawn.out_height);
    const int64_t channels = params.channels;
    const int style = plain ? 0 : chance(8) ? 2 : chance(3) ? 1 : 0;
    from.push_back(
        draw_layout(extents{params.batch, channels, drawn.in_height, drawn.in_width}, bytes, style, true));
    to.push_back(draw_layout(extents{params.batch, channels, drawn.out_height, drawn.out_width}, bytes,
                             !plain && chance(6) ? static_cast<int>(draw(0, 2)) : style, true));
    sources[i].reserve(static_cast<size_t>(from.back().bytes));
    fill_values(sources[i], params.kind);
    sources[i].upload();
    results[i].reserve(static_cast<size_t>(to.back().bytes));
    results[i].poison();
    results[i].upload();
    for (int axis = 0; axis < 2; ++axis) {
      const int in = axis == 0 ? drawn.in_width : drawn.in_height,
                out = axis == 0 ? drawn.out_width : drawn.out_height;
      twin &memory = tables[2 * i + static_cast<size_t>(axis)];
      if (!nearest && in == out) {
        most.push_back(0);
        continue;
      }
      const resize_table table(in, out, kind, params.kind == cvc_kind_u8);
      most.push_back(table.header().max_count);
      memory.host = table.bytes();
      memory.upload();
    }
    what += " " + std::to_string(drawn.in_width) + "x" + std::to_string(drawn.in_height) + "->" +
            std::to_string(drawn.out_width) + "x" + std::to_string(drawn.out_height) +
            (image.vertical_first != 0 ? " vertical first " : " ") + from.back().name + " -> " +
            to.back().name;
  }
  for (int side = 0; side < 2; ++side) {
    int64_t items = 0;
    for (size_t i = 0; i < count; ++i) {
      cvc_resize_image &image = params.images[i];
      image.src = at(from[i], side == 1 ? sources[i].device : sources[i].host.data());
      image.dst = at(to[i], side == 1 ? results[i].device : results[i].host.data());
      const auto address = [&](const twin &table) {
        return table.host.empty() ? 0
                                  : reinterpret_cast<uint64_t>(side == 1 ? table.device : table.host.data());
      };
      image.horizontal_table = address(tables[2 * i]);
      image.vertical_table = address(tables[2 * i + 1]);
      items += static_cast<int64_t>(image.items) * params.batch;
    }
    if (side == 0) {
      cvc_host_resize(&params, 0, items);
    } else {
      plan_resize(params, most);
      launch_resize(params);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    const cvc_resize_tiling &tiling = params.images[i].tiling;
    const bool tiled = cvc_resize_is_tiled(tiling);
    ++(tiled ? tiled_images : sampled_images);
    report("resize",
           what + (tiled ? " tiled, steps " + std::to_string(tiling.horizontal_steps) + " " +
                               std::to_string(tiling.vertical_steps) + " groups " +
                               std::to_string(tiling.band_groups)
                         : " by sample"),
           results[i]);
  }
}

} // namespace

int main(int argc, char **argv) {
  const int64_t cases = argc > 1 ? std::atoll(argv[1]) : 400;
  const uint64_t seed = argc > 2 ? static_cast<uint64_t>(std::atoll(argv[2])) : 1;
  const struct {
    const char *name;
    void (*check)();
  } checks[] = {{"flip", check_flip},
                {"flip_var_shape", check_flip_var_shape},
                {"convert_to", check_convert_to},
                {"normalize", check_normalize},
                {"normalize_var_shape", check_normalize_var_shape},
                {"reformat", check_reformat},
                {"resize", check_resize},
                {"preprocess", check_preprocess},
                {"nv12", check_nv12}};
  const auto is_wanted = [&](const char *name) { return argc <= 3 || std::string(argv[3]) == name; };
  for (const auto &one : checks) {
    generator.seed(seed);
    const int64_t before = failures;
    const int64_t count =
        std::string(one.name).find("var_shape") != std::string::npos ? (cases + 9) / 10 : cases;
    if (!is_wanted(one.name)) {
      continue;
    }
    for (int64_t i = 0; i < count; ++i) {
      one.check();
    }
    std::printf("%-20s %lld cases, %lld mismatches\n", one.name, static_cast<long long>(count),
                static_cast<long long>(failures - before));
    std::fflush(stdout);
  }
  if (is_wanted("resize")) {
    std::printf("resize: %lld images in tiles, %lld by sample\n", static_cast<long long>(tiled_images),
                static_cast<long long>(sampled_images));
  }
  // A check of nothing is none.
  if ((is_wanted("resize") && tiled_images == 0) || (is_wanted("preprocess") && fused_launches == 0)) {
    std::printf("FAILED: no image was resized in tiles, or no launch was fused\n");
    return 1;
  }
  if (failures != 0) {
    std::printf("FAILED: %lld results differ\n", static_cast<long long>(failures));
    return 1;
  }
  std::printf("all results have the same bits\n");
  return 0;
}
