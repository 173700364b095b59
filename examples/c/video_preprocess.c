// Prepares video frames for a network: resize as Pillow, flip, to float, normalize, to channels first.
//
//   video_preprocess                                    24 generated frames
//   video_preprocess FILE WIDTH HEIGHT COUNT            raw RGB frames, 3 bytes a pixel, one after another
//
// Batches go to two streams in turn. Every step's output comes from the cache and is released as soon as the
// next step is queued; from the second round on nothing is allocated. Each batch is checked against plain
// loops.
//
//   cc video_preprocess.c $(pkg-config --cflags --libs cvc) -lm
#include <cvc.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { streams = 2, batch = 4, out_height = 96, out_width = 128, channels = 3 };
enum { out_count = batch * out_height * out_width * channels };

static const float mean[channels] = {0.485f, 0.456f, 0.406f}, deviation[channels] = {0.229f, 0.224f, 0.225f};

static void check(cvc_status_t status, const char *what) {
  if (status == CVC_STATUS_OK)
    return;
  char message[512] = "";
  cvc_last_error_message(message, sizeof message, NULL);
  fprintf(stderr, "%s: %s: %s\n", what, cvc_status_string(status), message);
  exit(1);
}

#define CHECK(call) check((call), #call)

// Frames from a file, or moving colours.
struct video {
  FILE *file;
  int width, height, count, next;
};

// Up to a whole batch; the last one is filled up with its last frame. Returns how many frames are new.
static int read_batch(struct video *video, unsigned char *frames) {
  const size_t bytes = (size_t)video->width * (size_t)video->height * channels;
  int read = 0;
  for (; read < batch && video->next < video->count; ++read, ++video->next) {
    unsigned char *frame = frames + bytes * (size_t)read;
    if (video->file) {
      if (fread(frame, 1, bytes, video->file) != bytes) {
        fprintf(stderr, "the file ends in frame %d of %d\n", video->next, video->count);
        exit(1);
      }
      continue;
    }
    for (size_t i = 0; i < bytes; ++i)
      frame[i] = (unsigned char)(i * 7 + i / 1000 * (size_t)(video->next + 3));
  }
  for (int i = read; i > 0 && i < batch; ++i)
    memcpy(frames + bytes * (size_t)i, frames + bytes * (size_t)(i - 1), bytes);
  return read;
}

// What belongs to one stream: host memory may be touched again only after the stream was waited for.
struct lane {
  cvc_stream_t stream;
  unsigned char *frames;  // what is uploaded
  unsigned char *resized; // for the check alone
  float *result;
  int used;
};

static void submit(cvc_cache_t cache, const struct video *video, struct lane *lane) {
  const cvc_tensor_desc_t desc = {sizeof desc,
                                  CVC_DEVICE_CURRENT,
                                  4,
                                  {batch, video->height, video->width, channels},
                                  CVC_DTYPE_U8,
                                  "NHWC",
                                  0,
                                  0,
                                  0};
  cvc_normalize_params_t params;
  memset(&params, 0, sizeof params);
  params.struct_size = sizeof params;
  memcpy(params.base_values, mean, sizeof mean);
  memcpy(params.scale_values, deviation, sizeof deviation);
  params.base_count = params.scale_count = channels;
  params.global_scale = 1;
  params.flags = CVC_NORMALIZE_SCALE_IS_STDDEV;

  cvc_stream_t stream = lane->stream;
  cvc_tensor_t frame, resized, flipped, floats, normal, planar;
  // The stream is named at creation: memory whose last work is on this stream may be taken while that work
  // still runs.
  CHECK(cvc_tensor_create(cache, &desc, stream, &frame));
  CHECK(cvc_upload(stream, lane->frames, NULL, frame));
  CHECK(cvc_op_pillow_resize_new(stream, frame, out_height, out_width, CVC_FILTER_CUBIC, 0, &resized));
  CHECK(cvc_tensor_release(frame)); // no wait: queued work keeps its memory
  CHECK(cvc_download(stream, resized, lane->resized, NULL));
  CHECK(cvc_op_flip_new(stream, resized, 1, &flipped));
  CHECK(cvc_tensor_release(resized));
  CHECK(cvc_op_convert_to_new(stream, flipped, CVC_DTYPE_F32, 1.0 / 255, 0, CVC_ROUND_NEAREST, &floats));
  CHECK(cvc_tensor_release(flipped));
  CHECK(cvc_op_normalize_new(stream, floats, &params, &normal));
  CHECK(cvc_tensor_release(floats));
  CHECK(cvc_op_reformat_new(stream, normal, "NCHW", &planar));
  CHECK(cvc_tensor_release(normal));
  CHECK(cvc_download(stream, planar, lane->result, NULL));
  CHECK(cvc_tensor_release(planar));
  lane->used = 1;
}

// The steps after the resize, in plain loops, each operation rounded to float as in the library.
static void verify(const struct lane *lane, int number) {
  for (int i = 0; i < out_count; ++i) {
    const int x = i % out_width, y = i / out_width % out_height, c = i / (out_width * out_height) % channels;
    const int n = i / (out_width * out_height * channels);
    const int from = ((n * out_height + y) * out_width + (out_width - 1 - x)) * channels + c;
    volatile float value = (float)lane->resized[from] * (float)(1.0 / 255);
    volatile float variance = deviation[c] * deviation[c];
    variance = variance + 0.0f;
    value = value - mean[c];
    value = value * (1.0f / sqrtf(variance));
    if (value != lane->result[i]) {
      fprintf(stderr, "batch %d, element %d: %.9g, expected %.9g\n", number, i, (double)lane->result[i],
              (double)value);
      exit(1);
    }
  }
}

// Waits for a lane's stream; only then its host memory is complete, and free for the next batch.
static void finish(struct lane *lane, int number) {
  CHECK(cvc_stream_synchronize(lane->stream, -1));
  if (lane->used)
    verify(lane, number);
  lane->used = 0;
}

int main(int argc, char **argv) {
  struct video video = {NULL, 320, 180, 24, 0};
  if (argc != 1 && argc != 5) {
    fprintf(stderr, "usage: %s [FILE WIDTH HEIGHT COUNT]\n", argv[0]);
    return 2;
  }
  if (argc == 5) {
    video.file = fopen(argv[1], "rb");
    video.width = atoi(argv[2]);
    video.height = atoi(argv[3]);
    video.count = atoi(argv[4]);
    if (!video.file || video.width < 1 || video.height < 1 || video.count < 1) {
      fprintf(stderr, "%s: cannot be read as frames of %s x %s\n", argv[1], argv[2], argv[3]);
      return 2;
    }
  }
  cvc_cache_t cache;
  CHECK(cvc_cache_default(&cache));
  struct lane lanes[streams];
  for (int i = 0; i < streams; ++i) {
    CHECK(cvc_stream_create(CVC_DEVICE_CURRENT, 0, &lanes[i].stream));
    lanes[i].frames = malloc((size_t)video.width * (size_t)video.height * channels * batch);
    lanes[i].resized = malloc(out_count);
    lanes[i].result = malloc(out_count * sizeof(float));
    lanes[i].used = 0;
    if (!lanes[i].frames || !lanes[i].resized || !lanes[i].result)
      return 1;
  }

  int batches = 0;
  for (;; ++batches) {
    struct lane *lane = &lanes[batches % streams];
    finish(lane, batches - streams);
    if (read_batch(&video, lane->frames) == 0)
      break;
    submit(cache, &video, lane);
  }
  for (int i = 0; i < streams; ++i)
    finish(&lanes[i], batches - 1);

  cvc_cache_stats_t stats = {.struct_size = sizeof stats};
  CHECK(cvc_cache_stats(cache, CVC_DEVICE_CURRENT, &stats));
  printf("%d frames in %d batches on %d streams, all as expected\n", video.next, batches, streams);
  printf("cache: %llu exact hits, %llu fits, %llu of these on pending memory; %llu misses; %llu bytes in "
         "%llu entries\n",
         (unsigned long long)stats.hits_exact, (unsigned long long)stats.hits_fit,
         (unsigned long long)stats.hits_pending, (unsigned long long)stats.misses,
         (unsigned long long)stats.bytes, (unsigned long long)stats.count);
  for (int i = 0; i < streams; ++i) {
    CHECK(cvc_stream_destroy(lanes[i].stream));
    free(lanes[i].frames);
    free(lanes[i].resized);
    free(lanes[i].result);
  }
  if (video.file)
    fclose(video.file);
  return stats.live_handles == 0 ? 0 : 1;
}
