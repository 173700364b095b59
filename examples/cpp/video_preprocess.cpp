// Prepares video frames for a network: resize as Pillow, flip, to float, normalize, to channels first.
//
//   video_preprocess                                    24 generated frames
//   video_preprocess FILE WIDTH HEIGHT COUNT            raw RGB frames, 3 bytes a pixel, one after another
//
// Batches go to two streams in turn. Every step's output comes from the cache and goes back to it where its
// variable ends; from the second round on nothing is allocated. Each batch is checked against plain loops.
#include <cvc.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr int batch = 4, channels = 3;
constexpr cvc::Size out_size{128, 96};
constexpr std::size_t out_count = std::size_t(batch) * out_size.height * out_size.width * channels;
constexpr float mean[channels] = {0.485f, 0.456f, 0.406f}, deviation[channels] = {0.229f, 0.224f, 0.225f};

// Frames from a file, or moving colours.
class Video {
public:
  Video() = default;
  Video(const std::string &path, int width, int height, int count)
      : width_(width), height_(height), count_(count), file_(path, std::ios::binary) {
    if (!file_ || width < 1 || height < 1 || count < 1)
      throw std::runtime_error(path + ": cannot be read as frames of that size");
  }
  int width() const { return width_; }
  int height() const { return height_; }
  int frames_read() const { return next_; }
  std::size_t frame_bytes() const { return std::size_t(width_) * std::size_t(height_) * channels; }

  // Up to a whole batch; the last one is filled up with its last frame. False at the end.
  bool read_batch(std::vector<unsigned char> &frames) {
    frames.resize(frame_bytes() * batch);
    if (next_ == count_)
      return false;
    for (int i = 0; i < batch; ++i) {
      auto *frame = frames.data() + frame_bytes() * std::size_t(i);
      if (next_ == count_) {
        std::copy(frame - frame_bytes(), frame, frame);
        continue;
      }
      if (!file_.is_open())
        for (std::size_t k = 0; k < frame_bytes(); ++k)
          frame[k] = static_cast<unsigned char>(k * 7 + k / 1000 * std::size_t(next_ + 3));
      else if (!file_.read(reinterpret_cast<char *>(frame), static_cast<std::streamsize>(frame_bytes())))
        throw std::runtime_error("the file ends in frame " + std::to_string(next_));
      ++next_;
    }
    return true;
  }

private:
  int width_ = 320, height_ = 180, count_ = 24, next_ = 0;
  std::ifstream file_;
};

// What belongs to one stream: host memory may be touched again only after the stream was waited for.
class Lane {
public:
  std::vector<unsigned char> &frames() { return frames_; }

  void submit(const Video &video) {
    // The stream is named at creation: memory whose last work is on it may be taken while that work still
    // runs.
    cvc::Tensor frame({{batch, video.height(), video.width(), channels}, cvc::Dtype::u8, "NHWC"}, stream_);
    cvc::upload(stream_, frames_.data(), frame);
    const cvc::Tensor resized = cvc::pillow_resize(stream_, frame, out_size, cvc::Filter::cubic);
    frame = {}; // no wait: queued work keeps its memory
    cvc::download(stream_, resized, resized_.data());
    cvc::NormalizeParams params;
    params.base_values = {mean[0], mean[1], mean[2]};
    params.scale_values = {deviation[0], deviation[1], deviation[2]};
    params.scale_is_stddev = true;
    const cvc::Tensor floats =
        cvc::convert_to(stream_, cvc::flip(stream_, resized, 1), cvc::Dtype::f32, 1.0 / 255);
    cvc::download(stream_, cvc::reformat(stream_, cvc::normalize(stream_, floats, params), "NCHW"),
                  result_.data());
    used_ = true;
  }

  // Waits for the stream; only then its host memory is complete, and free for the next batch.
  void finish() {
    stream_.synchronize();
    if (used_)
      verify();
    used_ = false;
  }

private:
  // The steps after the resize, in plain loops, each operation rounded to float as in the library.
  void verify() const {
    constexpr int w = out_size.width, h = out_size.height;
    for (std::size_t i = 0; i < out_count; ++i) {
      const int index = static_cast<int>(i), x = index % w, y = index / w % h, c = index / (w * h) % channels;
      const int n = index / (w * h * channels);
      volatile float value =
          float(resized_[std::size_t(((n * h + y) * w + (w - 1 - x)) * channels + c)]) * float(1.0 / 255);
      volatile float variance = deviation[c] * deviation[c];
      value = value - mean[c];
      value = value * (1.0f / std::sqrt(float(variance)));
      if (value != result_[i])
        throw std::runtime_error("element " + std::to_string(i) + " is " + std::to_string(result_[i]) +
                                 ", expected " + std::to_string(float(value)));
    }
  }

  cvc::Stream stream_;
  std::vector<unsigned char> frames_, resized_ = std::vector<unsigned char>(out_count);
  std::vector<float> result_ = std::vector<float>(out_count);
  bool used_ = false;
};

void run(Video video) {
  std::array<Lane, 2> lanes;
  std::size_t batches = 0;
  for (;; ++batches) {
    Lane &lane = lanes[batches % lanes.size()];
    lane.finish();
    if (!video.read_batch(lane.frames()))
      break;
    lane.submit(video);
  }
  for (Lane &lane : lanes)
    lane.finish();

  const cvc_cache_stats_t stats = cvc::Cache::process().stats();
  std::printf("%d frames in %zu batches on %zu streams, all as expected\n", video.frames_read(), batches,
              lanes.size());
  std::printf(
      "cache: %llu exact hits, %llu fits, %llu of these on pending memory; %llu misses; %llu bytes in %llu "
      "entries\n",
      static_cast<unsigned long long>(stats.hits_exact), static_cast<unsigned long long>(stats.hits_fit),
      static_cast<unsigned long long>(stats.hits_pending), static_cast<unsigned long long>(stats.misses),
      static_cast<unsigned long long>(stats.bytes), static_cast<unsigned long long>(stats.count));
  if (stats.live_handles != 0)
    throw std::runtime_error("objects are left");
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 1 && argc != 5) {
    std::fprintf(stderr, "usage: %s [FILE WIDTH HEIGHT COUNT]\n", argv[0]);
    return 2;
  }
  try {
    run(argc == 1 ? Video() : Video(argv[1], std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4])));
  } catch (const std::exception &error) { // cvc::Error among them: its text names the argument and the value
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
