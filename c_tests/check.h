// Checks for the C and C++ tests: each prints what failed and goes on; main returns how many failed.
//
// A program is a list of RUN(test) calls between CHECK_BEGIN() and CHECK_END(). After each test every device
// of the cache used must be without a live handle, so that a test that leaks fails by itself.
#ifndef CVC_CHECK_H
#define CVC_CHECK_H

#include <cvc.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_failures; // changed by any thread, through the atomic builtins alone
static int check_done;

static inline int check_report(int passed, const char *text, const char *file, int line) {
  __atomic_add_fetch(&check_done, 1, __ATOMIC_RELAXED);
  if (!passed) {
    __atomic_add_fetch(&check_failures, 1, __ATOMIC_RELAXED);
    fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
  }
  return passed;
}

static inline const char *check_message(void) {
  static __thread char message[4096];
  size_t needed = 0;
  if (cvc_last_error_message(message, sizeof message, &needed) != CVC_STATUS_OK)
    message[0] = '\0';
  return message;
}

static inline int check_status(cvc_status_t status, cvc_status_t expected, const char *text, const char *file,
                               int line) {
  int passed = status == expected;
  check_report(passed, text, file, line);
  if (!passed)
    fprintf(stderr, "  returned %s (%s), expected %s\n", cvc_status_string(status),
            status == CVC_STATUS_OK ? "" : check_message(), cvc_status_string(expected));
  return passed;
}

// `words` is a null-terminated list of pieces that the message must have.
static inline int check_error(cvc_status_t status, cvc_status_t expected, const char *const *words,
                              const char *text, const char *file, int line) {
  if (!check_status(status, expected, text, file, line))
    return 0;
  const char *message = check_message();
  for (; *words; ++words) {
    if (!check_report(strstr(message, *words) != NULL, text, file, line)) {
      fprintf(stderr, "  the message \"%s\" lacks \"%s\"\n", message, *words);
      return 0;
    }
  }
  return 1;
}

static inline int check_equal(long long value, long long expected, const char *text, const char *file,
                              int line) {
  int passed = value == expected;
  check_report(passed, text, file, line);
  if (!passed)
    fprintf(stderr, "  is %lld, expected %lld\n", value, expected);
  return passed;
}

#define CHECK(expression) check_report((expression) ? 1 : 0, #expression, __FILE__, __LINE__)
#define CHECK_EQ(value, expected)                                                                            \
  check_equal((long long)(value), (long long)(expected), #value " == " #expected, __FILE__, __LINE__)
#define CHECK_OK(call) check_status((call), CVC_STATUS_OK, #call, __FILE__, __LINE__)
#define CHECK_STATUS(call, expected) check_status((call), (expected), #call, __FILE__, __LINE__)
// CHECK_ERROR(call, status, "desc.rank", "16"): the status, and a message that has each of the words.
#define CHECK_ERROR(call, expected, ...)                                                                     \
  do {                                                                                                       \
    const char *const check_words[] = {__VA_ARGS__, NULL};                                                   \
    check_error((call), (expected), check_words, #call, __FILE__, __LINE__);                                 \
  } while (0)
// For what every later line of a test needs.
#define REQUIRE_OK(call)                                                                                     \
  do {                                                                                                       \
    if (!CHECK_OK(call)) {                                                                                   \
      fprintf(stderr, "cannot go on\n");                                                                     \
      exit(1);                                                                                               \
    }                                                                                                        \
  } while (0)

// The accounts of one device of a cache.
static inline cvc_cache_stats_t check_stats(cvc_cache_t cache, int32_t device) {
  cvc_cache_stats_t stats;
  memset(&stats, 0, sizeof stats);
  stats.struct_size = sizeof stats;
  REQUIRE_OK(cvc_cache_stats(cache, device, &stats));
  return stats;
}

// No live object is left in the cache, on any device, and its accounts agree with each other.
static inline void check_nothing_live(cvc_cache_t cache) {
  int32_t devices = 0;
  REQUIRE_OK(cvc_device_count(&devices));
  for (int32_t device = 0; device < devices; ++device) {
    cvc_cache_stats_t stats = check_stats(cache, device);
    CHECK_EQ(stats.live_handles, 0);
    CHECK_EQ(stats.live_count, 0);
    CHECK_EQ(stats.live_bytes, 0);
    CHECK_EQ(stats.wrapped_count, 0);
    CHECK_EQ(stats.view_count, 0);
    CHECK_EQ(stats.bytes, stats.live_bytes - stats.unindexed_bytes + stats.idle_bytes + stats.pending_bytes);
  }
}

static inline cvc_cache_t check_default_cache(void) {
  cvc_cache_t cache = NULL;
  REQUIRE_OK(cvc_cache_default(&cache));
  return cache;
}

// Where the race checker is on, it has found nothing.
static inline void check_no_races(void) {
  static char report[1 << 16];
  uint64_t races = 0;
  if (cvc_host_race_count(&races) != CVC_STATUS_OK || CHECK_EQ(races, 0))
    return;
  if (cvc_host_race_report(report, sizeof report, NULL) == CVC_STATUS_OK)
    fputs(report, stderr);
}

// Waits for all work, drops what is idle and expects nothing live.
static inline void check_after_test(void) {
  cvc_cache_t cache = check_default_cache();
  int32_t devices = 0;
  REQUIRE_OK(cvc_device_count(&devices));
  for (int32_t device = 0; device < devices; ++device)
    CHECK_OK(cvc_device_synchronize(device, -1));
  check_nothing_live(cache);
  for (int32_t device = 0; device < devices; ++device)
    CHECK_OK(cvc_cache_clear(cache, device, CVC_SCOPE_GLOBAL));
  for (int32_t device = 0; device < devices; ++device)
    CHECK_EQ(check_stats(cache, device).bytes, 0);
  check_no_races();
}

#define CHECK_BEGIN() setvbuf(stdout, NULL, _IOLBF, 0)
#define RUN(test)                                                                                            \
  do {                                                                                                       \
    int check_before = check_failures;                                                                       \
    test();                                                                                                  \
    check_after_test();                                                                                      \
    printf("%-44s %s\n", #test, check_failures == check_before ? "ok" : "FAILED");                           \
  } while (0)
#define CHECK_END()                                                                                          \
  (printf("%d checks, %d failed\n", check_done, check_failures),                                             \
   check_done > 0 && check_failures == 0 ? 0 : 1)

#endif
