// What a hit costs: PAIRS times create and release of one shape beside IDLE idle entries of other shapes.
//
//   hit_cost IDLE PAIRS           counted by hit_cost.sh under callgrind, from create_and_release on
//   hit_cost IDLE PAIRS current   the same where the description leaves the device to the thread
//   hit_cost IDLE PAIRS sealed    where a system call other than write and exit kills the program
#include "fixtures.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) static int create_and_release(cvc_cache_t cache, const cvc_tensor_desc_t *desc,
                                                        cvc_stream_t stream, long pairs) {
  int good = 1;
  for (long i = 0; i < pairs; ++i) {
    cvc_tensor_t tensor = NULL;
    good &= cvc_tensor_create(cache, desc, stream, &tensor) == CVC_STATUS_OK;
    good &= cvc_tensor_release(tensor) == CVC_STATUS_OK;
  }
  return good;
}

// Idle entries of the same dtype and layout, each of another shape, of a few kilobytes.
static void make_idle_entries(cvc_cache_t cache, cvc_stream_t stream, long count) {
  cvc_tensor_t *tensors = (cvc_tensor_t *)calloc((size_t)count + 1, sizeof *tensors);
  for (long i = 0; i < count; ++i) {
    const int64_t shape[4] = {1 + i % 18, 1 + i / 18 % 18, 1 + i / 324 % 18, 1 + i / 5832};
    cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, shape);
    desc.row_align = 1;
    REQUIRE_OK(cvc_tensor_create(cache, &desc, stream, &tensors[i]));
  }
  for (long i = 0; i < count; ++i)
    REQUIRE_OK(cvc_tensor_release(tensors[i]));
  free(tensors);
}

static int forbid_system_calls(void) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const struct sock_fprog filter = {sizeof program / sizeof program[0], program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: hit_cost IDLE PAIRS [current | sealed]\n");
    return 2;
  }
  const long idle = strtol(argv[1], NULL, 10), pairs = strtol(argv[2], NULL, 10);
  const int sealed = argc > 3 && strcmp(argv[3], "sealed") == 0;
  cvc_cache_t cache = check_default_cache();
  cvc_stream_t stream = new_stream();
  // A shape that no idle entry has.
  const int64_t shape[4] = {1, 64, 64, 3};
  cvc_tensor_desc_t desc = tensor_desc(CVC_DTYPE_U8, "NHWC", 4, shape);
  if (argc <= 3 || strcmp(argv[3], "current") != 0)
    desc.device = 0;
  cvc_tensor_t first = NULL; // live meanwhile, so that no idle entry is made in its memory
  REQUIRE_OK(cvc_tensor_create(cache, &desc, stream, &first));
  make_idle_entries(cache, stream, idle);
  REQUIRE_OK(cvc_tensor_release(first));
  CHECK(create_and_release(cache, &desc, stream, 10));

  const cvc_cache_stats_t before = check_stats(cache, 0);
  if (sealed && !forbid_system_calls()) {
    printf("system calls cannot be forbidden here: %s\n", strerror(errno));
    return 77;
  }
  const int good = create_and_release(cache, &desc, stream, pairs);
  if (sealed) {
    const char text[] = "no system call was made\n";
    const int written = write(1, text, sizeof text - 1) == (ssize_t)(sizeof text - 1);
    _exit(good && written ? 0 : 1);
  }
  CHECK(good);
  const cvc_cache_stats_t after = check_stats(cache, 0);
  CHECK_EQ(after.hits_exact - before.hits_exact, pairs);
  CHECK_EQ(after.misses, before.misses);
  CHECK_EQ(after.idle_count, before.idle_count);
  CHECK_EQ(after.idle_count, idle + 1);
  CHECK_OK(cvc_stream_destroy(stream));
  return CHECK_END();
}
