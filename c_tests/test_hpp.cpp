// The C++ layer: references, exceptions, operators, callbacks and the move-only owners.
#include "fixtures.h"

#include <cvc.hpp>

#include <thread>
#include <vector>

const char *version_of_another_unit();

namespace {

using cvc::Dtype;
using cvc::Status;

const cvc::TensorDesc small({1, 4, 5, 3}, Dtype::u8, "NHWC");

// The status that `call` throws, or ok; `text` gets what().
template <class Call> Status thrown(Call &&call, std::string *text = nullptr) {
  try {
    call();
  } catch (const cvc::Error &error) {
    if (text)
      *text = error.what();
    return error.status();
  }
  return Status::ok;
}

bool has(const std::string &text, const char *word) { return text.find(word) != std::string::npos; }

void one_header_in_two_units() { CHECK(version_of_another_unit() == cvc_version()); }

void shapes_and_layouts() {
  cvc::Shape shape{1, 2, 3};
  CHECK(shape.size() == 3 && shape[2] == 3 && shape == cvc::Shape(std::array<std::int64_t, 3>{1, 2, 3}));
  CHECK(shape != cvc::Shape({1, 2}) && shape != cvc::Shape({1, 2, 3, 0}));
  CHECK(cvc::Layout("NHWC") == cvc::Layout(std::string_view("NHWC!", 4)));
  CHECK(thrown([] { cvc::Shape(std::vector<std::int64_t>(16).data(), 16); }) == Status::invalid_rank);
  std::string text;
  CHECK(thrown([] { cvc::Layout("ABCDEFGHIJKLMNOP"); }, &text) == Status::invalid_layout);
  CHECK(has(text, "ABCDEFGHIJKLMNOP") && has(text, "CVC_STATUS_INVALID_LAYOUT"));
  CHECK_EQ(cvc::size_of(Dtype::c128), 16);
  CHECK_EQ(cvc::size_of(static_cast<Dtype>(200)), 0);
}

void references() {
  const auto cache = cvc::Cache::process();
  cvc::Tensor first(small);
  const void *memory = first.data().data;
  {
    cvc::Tensor second = first, third;
    third = second;
    CHECK(second == first && third.get() == first.get());
    cvc::Tensor moved = std::move(second);
    CHECK(!second && moved == first);
  }
  CHECK(first.data().data == memory);
  CHECK(first.shape() == cvc::Shape({1, 4, 5, 3}) && first.dtype() == Dtype::u8 && first.layout() == "NHWC");
  CHECK_EQ(first.device(), 0);
  CHECK_EQ(first.nbytes(), small.nbytes());
  const std::uint64_t id = first.id();
  first = cvc::Tensor(); // the last reference: back to the cache
  CHECK_EQ(cache.stats().live_handles, 0);
  first = cvc::Tensor(small);
  CHECK(first.data().data == memory && first.id() == id);

  const cvc_tensor_t raw = first.detach();
  CHECK(!first);
  cvc::Tensor shared = cvc::Tensor::share(raw);
  first = cvc::Tensor::adopt(raw);
  CHECK(shared == first);
  CHECK(thrown([&] { cvc::Tensor().data(); }) == Status::invalid_handle);
}

void errors() {
  std::string text;
  cvc::TensorDesc bad = small;
  bad.shape[1] = -4;
  CHECK(thrown([&] { cvc::Tensor tensor(bad); }, &text) == Status::invalid_shape);
  CHECK(has(text, "desc.shape[1]") && has(text, "-4"));
  bad.shape = cvc::Shape{static_cast<std::int64_t>(cvc::device_info().total_memory) + (1 << 20)};
  bad.layout = {};
  bool caught = false;
  try {
    cvc::Tensor tensor(bad);
  } catch (const cvc::OutOfMemory &error) {
    caught = error.status() == Status::out_of_memory;
  }
  CHECK(caught);
  CHECK(thrown([] { cvc::check(CVC_STATUS_OK); }) == Status::ok);
  CHECK(thrown([] { cvc::check(cvc_device_set_current(99)); }) == Status::invalid_device);
  CHECK(thrown([] { cvc::Cache::process().set_limit(-1); }) == Status::invalid_limit);
}

void streams_events_and_latches() {
  cvc::Stream first, second;
  const cvc_stream_t raw = first;
  CHECK(first.id() != second.id());
  CHECK_EQ(first.device(), 0);
  const std::uint64_t latch = hold(first);
  CHECK(!first.query() && !first.synchronize_for(std::chrono::nanoseconds(0)));
  CHECK(!first.synchronize_for(std::chrono::nanoseconds(-1))); // no wait, and not an endless one
  cvc::Event event;
  event.record(first);
  second.wait(event);
  CHECK(!event.query() && !event.synchronize_for(std::chrono::nanoseconds(10)) && !second.query());
  cvc::Stream moved = std::move(first);
  CHECK(moved.get() == raw);
  let_go(latch);
  second.synchronize();
  event.synchronize();
  CHECK(moved.query() && event.query());
  moved = cvc::Stream();
  second.wait(moved);
  CHECK(cvc::Stream::named(nullptr).query());
  CHECK(thrown([&] { cvc::Stream::registered(second); }) == Status::invalid_stream);

  cvc::Event start(cvc::current_device, CVC_EVENT_TIMING), end(cvc::current_device, CVC_EVENT_TIMING);
  start.record(second);
  end.record(second);
  end.synchronize();
  CHECK(elapsed_ms(start, end) >= 0);
  if (on_host()) {
    cvc::Latch closed(second);
    CHECK(!second.query());
    closed.open();
    second.synchronize();
    {
      cvc::Latch forgotten(second);
    }
    second.synchronize();
  }
}

void wraps_with_a_callback() {
  const auto cache = cvc::Cache::process();
  cvc::Stream stream;
  unsigned char *memory = foreign_memory(60);
  auto owner = std::make_shared<int>(0);
  {
    auto tensor = cvc::Tensor::wrap(cvc::packed(memory, small), [owner]() noexcept { ++*owner; });
    CHECK(tensor.data().data == memory);
    CHECK_EQ(cache.stats().wrapped_count, 1);
    CHECK_EQ(owner.use_count(), 2);
    std::memset(memory, 5, 60);
    cvc::fill_zero(stream, tensor);
    stream.synchronize();
    CHECK_EQ(memory[59], 0);
    CHECK_EQ(*owner, 0);
  }
  CHECK_EQ(*owner, 1);
  CHECK_EQ(owner.use_count(), 1); // the callback itself is gone
  auto bad = cvc::packed(memory, small);
  bad.strides[1] = 2;
  CHECK(thrown([&] { cvc::Tensor::wrap(bad, [owner]() noexcept { ++*owner; }); }) == Status::invalid_strides);
  CHECK_EQ(*owner, 1);
  CHECK_EQ(owner.use_count(), 1);
  {
    auto plain = cvc::Tensor::wrap(cvc::packed(memory, small));
  }

  auto data = cvc::detail::sized<cvc_image_data_t>();
  data.format = CVC_FORMAT_RGB8;
  data.width = 5;
  data.height = 4;
  data.plane_count = 1;
  data.planes[0] = {memory, 15, 5, 4};
  {
    auto image = cvc::Image::wrap(data, [owner]() noexcept { ++*owner; });
    auto view = cvc::Tensor::of_image(image);
    image = cvc::Image();
    CHECK_EQ(*owner, 1);
  }
  CHECK_EQ(*owner, 2);
  foreign_memory_free(memory);
}

void views_and_images() {
  cvc::Image image({10, 4}, cvc::Format::rgb8);
  CHECK(image.size().width == 10 && image.size().height == 4 && image.format() == cvc::Format::rgb8);
  CHECK_EQ(image.device(), 0);
  CHECK_EQ(image.nbytes(), 512);
  CHECK(image.id() != 0);
  auto whole = cvc::Tensor::of_image(image), plane = cvc::Tensor::of_plane(image, 0);
  CHECK(whole.shape() == cvc::Shape({1, 4, 10, 3}) && plane.layout() == "HWC");
  CHECK(whole.reshape({4, 30}).shape() == cvc::Shape({4, 30}));
  image.synchronize();
  CHECK(image.synchronize_for(std::chrono::nanoseconds(0)));
  whole.synchronize();
  CHECK(whole.synchronize_for(std::chrono::nanoseconds(0)));
  CHECK(thrown([&] { cvc::Tensor::of_plane(image, 1); }) == Status::invalid_index);
  const auto desc = cvc::TensorDesc::of_images(2, {37, 7}, cvc::Format::rgb8, 1);
  CHECK(desc.shape == cvc::Shape({2, 7, 37, 3}) && desc.layout == "NHWC");
  CHECK_EQ(desc.nbytes(), 2048);
  CHECK_EQ(cvc::format_info(cvc::Format::nv12).plane_count, 2);
}

void the_job_and_its_reuse() {
  cvc::Stream stream;
  std::vector<unsigned char> in(2 * 8 * 10 * 3);
  std::vector<float> out(2 * 3 * 4 * 5), again(out.size());
  fill_noise(in.data(), in.size(), 77);
  cvc::NormalizeParams params;
  params.base_values = {0.485f, 0.456f, 0.406f};
  params.scale_values = {0.229f, 0.224f, 0.225f};
  params.scale_is_stddev = true;
  const auto run = [&](std::vector<float> &result) {
    cvc::Tensor frame({{2, 8, 10, 3}, Dtype::u8, "NHWC"}, stream);
    cvc::upload(stream, in.data(), frame);
    auto resized = cvc::pillow_resize(stream, frame, {5, 4}, cvc::Filter::cubic);
    auto flipped = cvc::flip(stream, resized, 1);
    auto floats = cvc::convert_to(stream, flipped, Dtype::f32, 1.0 / 255);
    auto normal = cvc::normalize(stream, floats, params);
    auto planar = cvc::reformat(stream, normal, "NCHW");
    CHECK(planar.shape() == cvc::Shape({2, 3, 4, 5}) && planar.last_stream() == stream.get());
    cvc::download(stream, planar, result.data());
  };
  run(out);
  stream.synchronize();
  const auto cache = cvc::Cache::process();
  const auto before = cache.stats();
  for (int i = 0; i < 5; ++i)
    run(again);
  stream.synchronize();
  CHECK(out == again);
  CHECK_EQ(cache.stats().misses, before.misses);

  // The same with destinations of the caller's.
  cvc::Tensor frame({{2, 8, 10, 3}, Dtype::u8, "NHWC"}, stream),
      resized({{2, 4, 5, 3}, Dtype::u8, "NHWC"}, stream);
  cvc::Tensor floats({{2, 4, 5, 3}, Dtype::f32, "NHWC"}, stream),
      planar({{2, 3, 4, 5}, Dtype::f32, "NCHW"}, stream);
  cvc::Tensor copied({{2, 3, 4, 5}, Dtype::f32, "NCHW"}, stream);
  cvc::upload(stream, in.data(), frame);
  cvc::pillow_resize(stream, frame, resized, cvc::Filter::cubic);
  cvc::flip(stream, resized, resized, 1);
  cvc::convert_to(stream, resized, floats, 1.0 / 255);
  cvc::normalize(stream, floats, floats, params);
  cvc::reformat(stream, floats, planar);
  cvc::copy(stream, planar, copied);
  cvc::download(stream, copied, again.data());
  stream.synchronize();
  CHECK(out == again);
}

void batches() {
  cvc::Stream stream;
  cvc::ImageBatch batch(40, stream);
  std::vector<cvc::Image> many(
      35, cvc::Image({6, 4}, cvc::Format::rgb8, stream)); // more than fit without the heap
  cvc::fill_zero(stream, cvc::Tensor::of_image(many[0]));
  batch.push(many);
  batch.push(many[0]);
  CHECK_EQ(batch.size(), 36);
  CHECK_EQ(batch.capacity(), 40);
  CHECK(batch[35].data().planes[0].data == many[0].data().planes[0].data);
  CHECK(thrown([&] { batch.push(many); }) == Status::capacity_exceeded);
  batch.pop(34);
  CHECK_EQ(batch.size(), 2);
  CHECK(batch.data(stream).records != nullptr && batch.id() != 0 && batch.nbytes() > 0);
  const auto resized = cvc::pillow_resize(stream, batch, {{3, 2}, {9, 5}});
  CHECK(resized[0].size().width == 3 && resized[1].size().height == 5);
  cvc::pillow_resize(stream, batch, resized);
  cvc::Tensor codes({{2}, Dtype::s32, "N"}, stream);
  cvc::fill_zero(stream, codes);
  const auto flipped = cvc::flip(stream, resized, codes);
  cvc::flip(stream, resized, flipped, codes);
  cvc::NormalizeParams params;
  params.dst_format = cvc::Format::rgbf32;
  const auto normal = cvc::normalize(stream, flipped, params);
  cvc::normalize(stream, flipped, normal, params);
  CHECK(normal[1].format() == cvc::Format::rgbf32);
  batch.clear();
  CHECK_EQ(batch.size(), 0);

  cvc::TensorBatch tensors(3);
  const cvc::Tensor first(small), second({{1, 9, 9, 3}, Dtype::u8, "NHWC"});
  tensors.push({first, second});
  tensors.push(first);
  tensors.set(2, second);
  CHECK(tensors[2].id() == second.id());
  CHECK_EQ(tensors.size(), 3);
  CHECK_EQ(tensors.capacity(), 3);
  CHECK(tensors.data(stream).records != nullptr && tensors.id() != 0 && tensors.nbytes() > 0);
  tensors.pop();
  CHECK_EQ(tensors.size(), 2);
  tensors.clear();
  stream.synchronize();
}

void preprocess() {
  cvc::Stream stream;
  const std::vector<unsigned char> pixels(2 * 6 * 8 * 3, 100);
  cvc::Tensor src({{2, 6, 8, 3}, Dtype::u8, "NHWC"}, stream);
  cvc::upload(stream, pixels.data(), src);
  cvc::PreprocessParams params;
  params.crops = {{1, 0, 6, 6}, {0, 1, 5, 5}};
  params.flip_code = 1;
  params.swap_channels = true;
  params.convert_dtype = Dtype::f32;
  params.alpha = 0.5;
  params.normalize = cvc::NormalizeParams();
  params.normalize->base_values = {1, 2, 3};
  const auto made = cvc::preprocess(stream, src, {4, 3}, "NCHW", params);
  CHECK(made.shape() == cvc::Shape({2, 3, 3, 4}) && made.dtype() == Dtype::f32);
  cvc::Tensor again({{2, 3, 3, 4}, Dtype::f32, "NCHW"}, stream);
  cvc::preprocess(stream, src, again, params);
  std::vector<float> values(2 * 3 * 3 * 4);
  cvc::download(stream, again, values.data());
  stream.synchronize();
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(values[i] == 49.0f - static_cast<float>(i / 12 % 3));

  params = {};
  params.color_matrix = cvc::ColorMatrix::bt709;
  cvc::ImageBatch batch(2, stream);
  for (const int side : {5, 8}) {
    cvc::Image image({side, side}, cvc::Format::nv12, stream);
    batch.push(image);
    cvc::fill_zero(stream, cvc::Tensor::of_plane(image, 0));
    cvc::fill_zero(stream, cvc::Tensor::of_plane(image, 1));
  }
  const auto frames = cvc::preprocess(stream, batch, {4, 4}, "NHWC", params);
  CHECK(frames.shape() == cvc::Shape({2, 4, 4, 3}) && frames.dtype() == Dtype::u8);
  cvc::preprocess(stream, batch, frames, params);
  params.nv12 = cvc::Nv12::full; // for tensors alone
  CHECK(thrown([&] { cvc::preprocess(stream, batch, frames, params); }) == Status::invalid_enum);
  stream.synchronize();
}

void accesses_of_others() {
  cvc::Stream writer, reader;
  cvc::Tensor tensor(small, writer);
  std::uint64_t latch = 0;
  {
    const cvc::Access access(tensor, writer, cvc::AccessMode::write);
    latch = hold(writer); // stands for a kernel of the caller's
  }
  CHECK(!tensor.synchronize_for(std::chrono::nanoseconds(0)));
  let_go(latch);
  tensor.synchronize();
  cvc::Access access(cvc::Image({4, 4}, cvc::Format::u8), reader, cvc::AccessMode::read_write);
  access.end();
  access.end(); // once is enough
  CHECK(thrown([&] { cvc::Access(tensor, cvc::no_stream(), cvc::AccessMode::read); }) ==
        Status::invalid_stream);
}

void caches_and_devices() {
  auto cache = cvc::Cache::create(1 << 20);
  CHECK_EQ(cache.limit(), 1 << 20);
  cache.set_limit(1 << 21);
  {
    cvc::Tensor tensor({{16, 32, 4}, Dtype::f32, "HWC"}, cvc::no_stream(), cache);
    CHECK_EQ(cache.bytes(), 8192);
    CHECK_EQ(cache.count(), 1);
    CHECK_EQ(cache.count(cvc::current_device, cvc::Scope::local), 1);
  }
  CHECK(cache.synchronize_for(std::chrono::nanoseconds(0)));
  cache.synchronize();
  CHECK_EQ(cache.stats().idle_count, 1);
  CHECK_EQ(cache.stats().peak_bytes, 8192);
  cache.clear();
  cache.reset_peak();
  cache.trim();
  cache.thread_detach();
  CHECK_EQ(cache.bytes(), 0);
  CHECK_EQ(cache.stats().peak_bytes, 0);
  CHECK(cvc::backend() == (on_host() ? cvc::Backend::host : cvc::Backend::cuda));
  CHECK(cvc::device_count() >= 1);
  cvc::set_device(cvc::get_device());
  cvc::synchronize_device();
}

void dlpack() {
  cvc::Stream stream;
  cvc::Tensor tensor(small, stream);
  const void *memory = tensor.data().data;
  auto again = cvc::Tensor::from_dlpack(tensor.to_dlpack(stream), true, "NHWC", stream);
  CHECK(again.data().data == memory);
  auto legacy = cvc::Tensor::from_dlpack(tensor.to_dlpack(stream, false), false, "NHWC", stream);
  CHECK(legacy.data().data == memory);
}

void raw_memory() {
  const auto cache = cvc::Cache::process();
  cvc::Stream stream, other;
  void *address = nullptr;
  {
    cvc::Memory memory(1000, stream);
    address = memory.get();
    CHECK(memory && memory.size() == 1000 && memory.stream() == stream.get());
    memory.record_stream(other);
    cvc::Memory moved = std::move(memory);
    CHECK(!memory && moved.get() == address);
    CHECK_EQ(cache.stats().live_handles, 1);
  }
  CHECK_EQ(cache.stats().live_handles, 0);
  stream.synchronize();
  other.synchronize();
  cvc::Memory memory(1024, stream, cvc::current_device, 64, cache);
  CHECK(memory.get() == address);
  cvc::Event event;
  CHECK(thrown([&] { memory.free_after(event); }) == Status::invalid_event && memory);
  event.record(stream);
  memory.free_after(event);
  CHECK(!memory && memory.size() == 0);
  memory = cvc::Memory(64);
  memory.set_stream(other);
  memory.free();
  CHECK(!memory);
  CHECK(!cvc::Memory(0) && !cvc::Memory());
  CHECK(thrown([] { cvc::Memory(1, nullptr, cvc::current_device, 3); }) == Status::invalid_alignment);
}

void references_from_threads() {
  const cvc::Tensor tensor(small);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([tensor] {
      for (int k = 0; k < 200; ++k)
        cvc::Tensor copy = tensor;
    });
  for (auto &thread : threads)
    thread.join();
}

} // namespace

int main() {
  CHECK_BEGIN();
  RUN(one_header_in_two_units);
  RUN(shapes_and_layouts);
  RUN(references);
  RUN(errors);
  RUN(streams_events_and_latches);
  RUN(wraps_with_a_callback);
  RUN(views_and_images);
  RUN(the_job_and_its_reuse);
  RUN(batches);
  RUN(preprocess);
  RUN(accesses_of_others);
  RUN(caches_and_devices);
  RUN(dlpack);
  RUN(raw_memory);
  RUN(references_from_threads);
  return CHECK_END();
}
