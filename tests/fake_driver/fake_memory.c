// Memory of the fake driver, and the copies and fills that use it.
#define _GNU_SOURCE
#include "fake_libcuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct physical {
  size_t size;
  int device;
  int references;
};
struct range {
  uint64_t start;
  size_t size;
  int plain; // made by cuMemAlloc
  struct physical *physical;
  int open;
  struct range *next;
};
static struct range *ranges;

unsigned cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
  NEED_CONTEXT();
  *total = (size_t)*setting("memory");
  *free_bytes = *total - (size_t)*setting("physical");
  return SUCCESS;
}
unsigned cuMemGetAllocationGranularity(size_t *granularity, const void *properties, unsigned option) {
  (void)properties, (void)option;
  ENTER();
  *granularity = GRANULARITY;
  return SUCCESS;
}
static struct range *range_at(uint64_t start, size_t size) {
  for (struct range *range = ranges; range; range = range->next)
    if (start >= range->start && start + size <= range->start + range->size)
      return range;
  return NULL;
}
static void remove_range(struct range *range) {
  struct range **link = &ranges;
  while (*link != range)
    link = &(*link)->next;
  *link = range->next;
  munmap((void *)range->start, range->size);
  *setting("reserved") -= (long)range->size;
  free(range);
}
static struct range *add_range(size_t size, size_t alignment, int protection) {
  char *base = mmap(NULL, size + alignment, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED)
    return NULL;
  char *start = (char *)(((uintptr_t)base + alignment - 1) / alignment * alignment);
  if (start > base)
    munmap(base, (size_t)(start - base));
  munmap(start + size, (size_t)(base + alignment - start));
  mprotect(start, size, protection);
  struct range *range = calloc(1, sizeof *range);
  range->start = (uint64_t)start;
  range->size = size;
  range->next = ranges;
  ranges = range;
  *setting("reserved") += (long)size;
  return range;
}
unsigned cuMemAddressReserve(uint64_t *start, size_t size, size_t alignment, uint64_t hint,
                             unsigned long long flags) {
  (void)hint, (void)flags;
  NEED_CONTEXT();
  if (size % GRANULARITY)
    return INVALID_VALUE;
  pthread_mutex_lock(&mutex);
  struct range *range = add_range(size, alignment > GRANULARITY ? alignment : GRANULARITY, PROT_NONE);
  pthread_mutex_unlock(&mutex);
  if (!range)
    return OUT_OF_MEMORY;
  *start = range->start;
  return SUCCESS;
}
unsigned cuMemAddressFree(uint64_t start, size_t size) {
  NEED_CONTEXT();
  pthread_mutex_lock(&mutex);
  struct range *range = range_at(start, size);
  unsigned code = INVALID_VALUE;
  if (range && range->start == start && range->size == size && !range->physical) {
    remove_range(range);
    code = SUCCESS;
  }
  pthread_mutex_unlock(&mutex);
  return code;
}
// The head of CUmemAllocationProp: type, handle types, location type, location id.
unsigned cuMemCreate(struct physical **handle, size_t size, const int *properties, unsigned long long flags) {
  (void)flags;
  NEED_CONTEXT();
  if (size % GRANULARITY || properties[0] != 1 || properties[1] != 0 || properties[2] != 1)
    return INVALID_VALUE;
  if (*setting("physical") + (long)size > *setting("memory"))
    return OUT_OF_MEMORY;
  *handle = calloc(1, sizeof **handle);
  (*handle)->size = size;
  (*handle)->device = properties[3];
  (*handle)->references = 1;
  *setting("physical") += (long)size;
  return SUCCESS;
}
static void drop_physical(struct physical *physical) {
  if (--physical->references == 0) {
    *setting("physical") -= (long)physical->size;
    free(physical);
  }
}
unsigned cuMemRelease(struct physical *handle) {
  NEED_CONTEXT();
  drop_physical(handle);
  return SUCCESS;
}
unsigned cuMemMap(uint64_t start, size_t size, size_t offset, struct physical *handle,
                  unsigned long long flags) {
  (void)flags;
  NEED_CONTEXT();
  struct range *range = range_at(start, size);
  if (!range || range->start != start || range->physical || offset || handle->size != size)
    return INVALID_VALUE;
  range->physical = handle;
  handle->references++;
  return SUCCESS;
}
unsigned cuMemUnmap(uint64_t start, size_t size) {
  NEED_CONTEXT();
  struct range *range = range_at(start, size);
  if (!range || range->start != start || range->size != size || !range->physical)
    return INVALID_VALUE;
  drop_physical(range->physical);
  range->physical = NULL;
  range->open = 0;
  mprotect((void *)start, size, PROT_NONE);
  madvise((void *)start, size, MADV_DONTNEED);
  return SUCCESS;
}
// CUmemAccessDesc: location type, location id, flags.
unsigned cuMemSetAccess(uint64_t start, size_t size, const int *access, size_t count) {
  NEED_CONTEXT();
  struct range *range = range_at(start, size);
  if (!range || !range->physical || count != 1 || access[0] != 1 || access[2] != 3)
    return INVALID_VALUE;
  range->open = 1;
  mprotect((void *)start, size, PROT_READ | PROT_WRITE);
  return SUCCESS;
}
unsigned cuMemAlloc_v2(uint64_t *start, size_t size) {
  NEED_CONTEXT();
  UNSAFE_IN_CAPTURE();
  if (*setting("physical") + (long)size > *setting("memory"))
    return OUT_OF_MEMORY;
  pthread_mutex_lock(&mutex);
  struct range *range = add_range(size, 4096, PROT_READ | PROT_WRITE);
  range->plain = range->open = 1;
  *setting("physical") += (long)size;
  *start = range->start;
  pthread_mutex_unlock(&mutex);
  return SUCCESS;
}
unsigned cuMemFree_v2(uint64_t start) {
  NEED_CONTEXT();
  UNSAFE_IN_CAPTURE();
  pthread_mutex_lock(&mutex);
  struct range *range = range_at(start, 1);
  unsigned code = INVALID_VALUE;
  if (range && range->plain && range->start == start) {
    *setting("physical") -= (long)range->size;
    remove_range(range);
    code = SUCCESS;
  }
  pthread_mutex_unlock(&mutex);
  return code;
}
static char pinned[4096] __attribute__((aligned(4096)));
unsigned cuMemHostAlloc(void **memory, size_t size, unsigned flags) {
  NEED_CONTEXT();
  UNSAFE_IN_CAPTURE();
  if (size > sizeof pinned || flags != 2)
    return INVALID_VALUE;
  *memory = pinned;
  return SUCCESS;
}
unsigned cuPointerGetAttributes(unsigned count, const unsigned *attributes, void **values, uint64_t pointer) {
  NEED_CONTEXT();
  struct range *range = range_at(pointer, 1);
  int on_host = pointer - (uint64_t)pinned < sizeof pinned;
  int device = range && range->physical ? range->physical->device : 0;
  for (unsigned i = 0; i < count; i++)
    switch (attributes[i]) {
    case 2:
      *(unsigned *)values[i] = range && range->open ? 2 : on_host;
      break;
    case 8:
      *(unsigned *)values[i] = 0;
      break;
    case 9:
      *(int *)values[i] = range || on_host ? device : -2;
      break;
    default:
      return INVALID_VALUE;
    }
  return SUCCESS;
}

// Memory that every device can use.
void *fake_pinned(int device) {
  (void)device;
  return pinned;
}

// ---- Copies and fills ----

int on_device(uint64_t start, size_t size) {
  struct range *range = range_at(start, size);
  if (range && range->open)
    return 1;
  current->fault = ILLEGAL_ADDRESS;
  return 0;
}
static unsigned copy_rows(char *dst, size_t dst_pitch, const char *src, size_t src_pitch, size_t width,
                          size_t rows) {
  for (size_t row = 0; row < rows; row++)
    memmove(dst + row * dst_pitch, src + row * src_pitch, width);
  *setting("rows") += (long)rows;
  return SUCCESS;
}
unsigned cuMemcpyHtoDAsync_v2(uint64_t dst, const void *src, size_t size, struct stream *handle) {
  STREAM(handle);
  return on_device(dst, size) ? copy_rows((char *)dst, 0, src, 0, size, 1) : SUCCESS;
}
unsigned cuMemcpyDtoHAsync_v2(void *dst, uint64_t src, size_t size, struct stream *handle) {
  STREAM(handle);
  return on_device(src, size) ? copy_rows(dst, 0, (char *)src, 0, size, 1) : SUCCESS;
}
unsigned cuMemcpyDtoDAsync_v2(uint64_t dst, uint64_t src, size_t size, struct stream *handle) {
  STREAM(handle);
  return on_device(dst, size) && on_device(src, size) ? copy_rows((char *)dst, 0, (char *)src, 0, size, 1)
                                                      : SUCCESS;
}
struct side {
  size_t x, y;
  unsigned type;
  char *host;
  uint64_t device;
  void *array;
  size_t pitch;
};
struct copy_2d {
  struct side src, dst;
  size_t width, height;
};
static char *side_start(const struct side *side, size_t width, size_t height) {
  if (side->x || side->y || side->array || side->pitch < width || side->pitch > (size_t)*setting("max_pitch"))
    return NULL;
  size_t size = (height - 1) * side->pitch + width;
  if (side->type == 1)
    return side->device ? NULL : side->host;
  return side->type == 2 && !side->host && on_device(side->device, size) ? (char *)side->device : NULL;
}
unsigned cuMemcpy2DAsync_v2(const struct copy_2d *copy, struct stream *handle) {
  STREAM(handle);
  char *src = side_start(&copy->src, copy->width, copy->height);
  char *dst = side_start(&copy->dst, copy->width, copy->height);
  if (!src || !dst)
    return INVALID_VALUE;
  return copy_rows(dst, copy->dst.pitch, src, copy->src.pitch, copy->width, copy->height);
}
unsigned cuMemsetD8Async(uint64_t dst, unsigned char value, size_t size, struct stream *handle) {
  STREAM(handle);
  if (on_device(dst, size))
    memset((void *)dst, value, size);
  return SUCCESS;
}
unsigned cuMemsetD2D8Async(uint64_t dst, size_t pitch, unsigned char value, size_t width, size_t height,
                           struct stream *handle) {
  STREAM(handle);
  if (pitch < width || pitch > (size_t)*setting("max_pitch"))
    return INVALID_VALUE;
  for (size_t row = 0; row < height && on_device(dst + row * pitch, width); row++)
    memset((void *)(dst + row * pitch), value, width);
  return SUCCESS;
}
