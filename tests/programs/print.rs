//! A program as C, against cvc.h alone: what a person debugs with.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::program::*;

/// Slots, threads that take their steps one at a time, and what is longer than a line.
const BEGIN: &str = r#"#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cvc.h"

static cvc_cache_t caches[16];
static cvc_stream_t streams[12];
static cvc_event_t events[2];
static cvc_tensor_t tensors[16];
static cvc_image_t images[4];
static cvc_image_batch_t batches[3];
static cvc_tensor_batch_t tensor_batches[3];
static void *exports[3];
static void *memories[6];
static cvc_cache_t cache_of[6];
static int cache_count;

/* A stream that somebody else made and will destroy: any that the library did not create. */
cvc_stream_t foreign_stream(int device);
void end_foreign_stream(cvc_stream_t stream);

/* A copy or a launch that the library does not see. */
void own_work(cvc_stream_t stream, void *memory, size_t bytes, int write);

static void ok(cvc_status_t status) {
  char text[1024] = "";
  if (status == CVC_STATUS_OK || status == CVC_STATUS_OUT_OF_MEMORY || status == CVC_STATUS_NOT_READY) return;
  cvc_last_error_message(text, sizeof text, NULL);
  fprintf(stderr, "%s: %s\n", cvc_status_string(status), text);
}

/* Names 12, 13 and 14: the legacy stream, the thread's own, none. */
static cvc_stream_t stream(int name) {
  if (name == 12) return (cvc_stream_t)1;
  if (name == 13) return (cvc_stream_t)2;
  return name == 14 ? CVC_STREAM_NONE : streams[name];
}

static cvc_cache_t own_cache(int number) { return caches[number ? cache_count - 1 : 0]; }

static cvc_tensor_desc_t desc(int rank, int64_t a, int64_t b, int64_t c, int64_t d, cvc_dtype_t dtype,
                              const char *layout, int device) {
  cvc_tensor_desc_t desc;
  int64_t shape[4] = {a, b, c, d};
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.device = device;
  desc.rank = rank;
  memcpy(desc.shape, shape, sizeof shape);
  desc.dtype = dtype;
  strncpy(desc.layout, layout, sizeof desc.layout - 1);
  return desc;
}

static void new_tensor(int slot, cvc_tensor_desc_t desc, int consumer, int cache, int used) {
  ok(cvc_tensor_create(own_cache(cache), &desc, stream(consumer), &tensors[slot]));
  if (used && consumer != 14) ok(cvc_tensor_end_access(tensors[slot], stream(consumer), CVC_ACCESS_WRITE));
}

/* Memory of the program's own, on the host backend any that it has. */
static unsigned char pieces[4][25600];
static int told[4];

static void owner_hears(void *piece) { told[(unsigned char(*)[25600])piece - pieces]++; }

/* Around memory that the host, or else work on the stream, has written. */
static void wrap(int slot, int piece, cvc_tensor_desc_t desc, int64_t element, int producer, int cache, int keep_shells) {
  cvc_tensor_data_t data;
  int64_t stride = element;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  data.device = desc.device;
  data.rank = desc.rank;
  for (int i = desc.rank - 1; i >= 0; i--) {
    data.shape[i] = desc.shape[i];
    data.strides[i] = stride;
    stride *= desc.shape[i];
  }
  data.dtype = desc.dtype;
  memcpy(data.layout, desc.layout, sizeof data.layout);
  data.flags = keep_shells ? CVC_WRAP_KEEP_SHELLS : 0;
  data.data = pieces[piece];
  if (producer != 14) own_work(stream(producer), data.data, (size_t)stride, 1);
  ok(cvc_tensor_wrap(own_cache(cache), &data, owner_hears, data.data, stream(producer), &tensors[slot]));
}

static void get_tensor(int batch, int index, int slot) {
  ok(cvc_tensor_batch_get(tensor_batches[batch], index, &tensors[slot]));
}

static void write_records(int batch, int name) {
  cvc_tensor_batch_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  ok(cvc_tensor_batch_get_data(tensor_batches[batch], stream(name), &data));
}

static void view(int to, int from, cvc_tensor_desc_t desc) { ok(cvc_tensor_reshape(tensors[from], &desc, &tensors[to])); }

static void new_image(int slot, int width, int height, cvc_format_t format, int consumer) {
  cvc_image_desc_t desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.format = format;
  desc.width = width;
  desc.height = height;
  ok(cvc_image_create(caches[0], &desc, stream(consumer), &images[slot]));
}

/* Queued copies read and write this memory, so it stays. */
static void upload(int slot, int name, int first, size_t bytes, int codes) {
  unsigned char *values = malloc(bytes);
  for (size_t i = 0; i < bytes; i++) values[i] = (unsigned char)(first + i % 251);
  for (int i = 0; codes && i < 4; i++) ((int32_t *)(void *)values)[i] = (first + i) % 4 - 1;
  ok(cvc_upload(stream(name), values, NULL, tensors[slot]));
}

static void download(int slot, int name, size_t bytes) {
  ok(cvc_download(stream(name), tensors[slot], malloc(bytes), NULL));
}

static void launch(int slot, int name, cvc_access_t access) {
  ok(cvc_tensor_begin_access(tensors[slot], stream(name), access));
  ok(cvc_tensor_end_access(tensors[slot], stream(name), access));
}

/* Where it lends, the consumer queues work of its own. */
static void export(int slot, int tensor, int consumer, int lends, size_t bytes) {
  cvc_tensor_data_t data;
  memset(&data, 0, sizeof data);
  data.struct_size = sizeof data;
  ok(cvc_tensor_to_dlpack(tensors[tensor], stream(consumer), 0, &exports[slot]));
  ok(cvc_tensor_get_data(tensors[tensor], &data));
  if (lends) ok(cvc_host_race_access(data.device, stream(consumer), data.data, bytes, CVC_ACCESS_WRITE));
}

/* Where work on raw memory has to wait for other work, or a stream would be left out at its free, the program sees to it:
   by waits and cvc_mem_record_stream that are not here. */
static void alloc(int slot, int device, size_t bytes, size_t alignment, int consumer, int cache) {
  cache_of[slot] = own_cache(cache);
  ok(cvc_mem_alloc(cache_of[slot], device, bytes, alignment, stream(consumer), &memories[slot]));
}

/* The program makes the stream wait for work of others on the memory, where it has to. */
static void work(int slot, int name, size_t bytes, int write) {
  if (name == 13) ok(cvc_mem_record_stream(cache_of[slot], memories[slot], stream(name)));
  own_work(stream(name), memories[slot], bytes, write);
}

/* The head of a DLManagedTensor, whose tensor has 48 bytes. */
typedef struct managed_t {
  uint64_t tensor[6];
  void *context;
  void (*deleter)(struct managed_t *);
} managed_t;

static void end_export(int slot) {
  managed_t *managed = exports[slot];
  managed->deleter(managed);
}

static void new_cache(int64_t limit) {
  cvc_cache_options_t options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.limit = limit;
  ok(cvc_cache_create(&options, &caches[cache_count++]));
}

static void host_step(uint64_t number) {
  uint64_t count = 0;
  ok(cvc_host_step_count(&count));
  if (count) ok(cvc_host_step(number % count));
}

static void settle(void) {
  ok(cvc_host_fault_clear());
  for (int i = 0; i < 12; i++) cvc_host_capture_end(streams[i]);
  for (int device = 0; device < 2; device++) ok(cvc_device_synchronize(device, -1));
  for (int device = 0; device < 2; device++) ok(cvc_cache_clear(caches[0], device, CVC_SCOPE_GLOBAL));
}

/* What is known and charged now, and the races so far. */
static void look(void) {
  static char text[1 << 16];
  for (int device = 0; device < 2; device++) {
    cvc_cache_stats_t now;
    now.struct_size = sizeof now;
    ok(cvc_cache_stats(caches[0], device, &now));
    printf("device %d: live %llu idle %llu pending %llu unindexed %llu driver %llu\n", device,
           (unsigned long long)now.live_bytes, (unsigned long long)now.idle_bytes,
           (unsigned long long)now.pending_bytes, (unsigned long long)now.unindexed_bytes,
           (unsigned long long)now.driver_bytes);
  }
  printf("owners of wraps told: %d %d %d %d\n", told[0], told[1], told[2], told[3]);
  ok(cvc_host_race_report(text, sizeof text, NULL));
  fputs(text, stdout);
}

typedef void (*step_t)(void);
static pthread_t threads[4];
static int runs[4];
static step_t next[4];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void *run_thread(void *number) {
  int thread = (int)(intptr_t)number;
  pthread_mutex_lock(&mutex);
  while (runs[thread]) {
    if (next[thread]) {
      next[thread]();
      next[thread] = NULL;
      pthread_cond_broadcast(&changed);
    } else {
      pthread_cond_wait(&changed, &mutex);
    }
  }
  pthread_mutex_unlock(&mutex);
  return NULL;
}

static void on_thread(int thread, step_t step) {
  pthread_mutex_lock(&mutex);
  if (!runs[thread]) {
    runs[thread] = 1;
    pthread_create(&threads[thread], NULL, run_thread, (void *)(intptr_t)thread);
  }
  next[thread] = step;
  pthread_cond_broadcast(&changed);
  while (next[thread]) pthread_cond_wait(&changed, &mutex);
  pthread_mutex_unlock(&mutex);
}

static void end_thread(int thread) {
  if (!runs[thread]) return;
  pthread_mutex_lock(&mutex);
  runs[thread] = 0;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  pthread_join(threads[thread], NULL);
}

static void begin(void) {
  setenv("CVC_BACKEND", "host", 1);
  setenv("CVC_HOST_DEVICES", "2", 1);
  setenv("CVC_HOST_MEMORY", "256K", 1);
  ok(cvc_backend_instrument(CVC_INSTRUMENT_STEPPED | CVC_INSTRUMENT_RACE_CHECK | CVC_INSTRUMENT_FAULTS |
                            CVC_INSTRUMENT_CAPTURES));
  ok(cvc_cache_default(&caches[cache_count++]));
  for (int device = 0; device < 2; device++) ok(cvc_cache_set_limit(caches[0], device, 65536));
  for (int event = 0; event < 2; event++) ok(cvc_event_create(0, 0, &events[event]));
}

/* Each is used by some programs only. */
void *const uses[] = {(void *)own_cache, (void *)new_tensor, (void *)view, (void *)new_image, (void *)upload,
                      (void *)download, (void *)launch, (void *)export, (void *)end_export, (void *)new_cache,
                      (void *)host_step, (void *)settle, (void *)wrap, (void *)get_tensor, (void *)write_records, (void *)desc, (void *)alloc, (void *)work, (void *)on_thread, (void *)end_thread};
"#;

fn desc(kind: u16, device: bool, with_n: bool) -> String {
    let of = &TENSOR_KINDS[usize::from(kind)];
    let mut shape = of.shape.to_vec();
    if with_n {
        shape.insert(0, 1);
    }
    let (rank, layout) = (shape.len(), if with_n { "NHWC" } else { of.layout });
    shape.resize(4, 0);
    let [a, b, c, d] = shape[..] else {
        unreachable!("four numbers");
    };
    let (dtype, device) = (of.dtype, u8::from(device));
    format!("desc({rank}, {a}, {b}, {c}, {d}, CVC_DTYPE_{dtype}, \"{layout}\", {device})")
}

/// What the printer knows of the slots: the kinds of tensors and images, and whose the streams are.
#[derive(Default)]
struct Known {
    tensors: [u16; TENSORS as usize],
    images: [u16; IMAGES as usize],
    tensor_batches: [Vec<u16>; BATCHES as usize],
    streams: [u16; STREAMS as usize],
    raws: [usize; RAWS as usize],
}

const SECOND_IMAGE: u16 = 100;

impl Known {
    fn value_bytes(&self, slot: u16) -> usize {
        let extents = match self.tensors[usize::from(slot)] {
            image if image >= SECOND_IMAGE => {
                IMAGE_KINDS[usize::from(image - SECOND_IMAGE)].extents
            }
            kind => TENSOR_KINDS[usize::from(kind)].extents,
        };
        extents.iter().product()
    }

    /// The step as a statement.
    fn statement(&mut self, step: &Step) -> String {
        let [a, b, c, d] = step.numbers;
        match step.what {
            What::HostStep => format!("host_step({a});"),
            What::HostAll => "uint64_t steps; ok(cvc_host_step_all(&steps));".into(),
            What::Create => {
                self.tensors[usize::from(a)] = b;
                let desc = desc(b, a >= FIRST_TENSOR_OF_DEVICE_1, false);
                format!("new_tensor({a}, {desc}, {c}, {}, {});", d % 2, d / 2 % 2)
            }
            What::ReleaseTensor => format!("ok(cvc_tensor_release(tensors[{a}]));"),
            What::View => {
                let of = self.tensors[usize::from(b)];
                let other_rows = c % 2 == 1 && of == 1;
                self.tensors[usize::from(a)] = if other_rows { 2 } else { of };
                let kind = self.tensors[usize::from(a)].min(SECOND_IMAGE - 1);
                let kind = kind.min(TENSOR_KINDS.len() as u16 - 1);
                format!("view({a}, {b}, {});", desc(kind, false, !other_rows))
            }
            What::Upload => {
                let codes = u8::from(self.tensors[usize::from(a)] == CODES);
                format!("upload({a}, {b}, {c}, {}, {codes});", self.value_bytes(a))
            }
            What::Fill => format!("ok(cvc_fill_zero(stream({b}), tensors[{a}]));"),
            What::Flip => format!(
                "ok(cvc_op_flip(stream({b}), tensors[{a}], tensors[{a}], {}));",
                i32::from(c % 3) - 1
            ),
            What::FlipNew => {
                self.tensors[usize::from(b)] = self.tensors[usize::from(a)];
                let code = i32::from(d % 3) - 1;
                format!("ok(cvc_op_flip_new(stream({c}), tensors[{a}], {code}, &tensors[{b}]));")
            }
            What::Copy => format!("ok(cvc_copy(stream({c}), tensors[{a}], tensors[{b}]));"),
            What::Download => format!("download({a}, {b}, {});", self.value_bytes(a)),
            What::Launch => {
                let access = if c % 2 == 1 { "WRITE" } else { "READ" };
                format!("launch({a}, {b}, CVC_ACCESS_{access});")
            }
            What::Export => {
                let lends = u8::from(d % 2 == 1 && c != NO_STREAM);
                format!("export({a}, {b}, {c}, {lends}, {});", self.value_bytes(b))
            }
            What::EndExport => format!("end_export({a});"),
            What::NewImage => {
                self.images[usize::from(a)] = b;
                let of = &IMAGE_KINDS[usize::from(b)];
                let (width, height, format) = (of.shape[0], of.shape[1], of.dtype);
                format!("new_image({a}, {width}, {height}, CVC_FORMAT_{format}, {c});")
            }
            What::ReleaseImage => format!("ok(cvc_image_release(images[{a}]));"),
            What::ImageView => {
                self.tensors[usize::from(a)] = SECOND_IMAGE + self.images[usize::from(b)];
                format!("ok(cvc_tensor_from_image(images[{b}], &tensors[{a}]));")
            }
            What::NewBatch => {
                let capacity = CAPACITIES[usize::from(b) % CAPACITIES.len()];
                format!("ok(cvc_image_batch_create(caches[0], 0, {capacity}, stream({c}), &batches[{a}]));")
            }
            What::Push => format!("ok(cvc_image_batch_push(batches[{a}], &images[{b}], 1));"),
            What::ReleaseBatch => format!("ok(cvc_image_batch_release(batches[{a}]));"),
            What::FlipBatch => format!(
                "ok(cvc_op_flip_var_shape_new(stream({c}), batches[{a}], tensors[{d}], &batches[{b}]));"
            ),
            What::Wrap
            | What::NewTensorBatch
            | What::PushTensor
            | What::SetTensor
            | What::GetTensor
            | What::PopTensors
            | What::ClearTensors
            | What::WriteRecords
            | What::ReleaseTensorBatch => self.statement_of_wraps_and_batches(step),
            _ => self.other_statement(step),
        }
    }

    fn statement_of_wraps_and_batches(&mut self, step: &Step) -> String {
        let [a, b, c, d] = step.numbers;
        match step.what {
            What::Wrap => {
                self.tensors[usize::from(a)] = b;
                let of = &TENSOR_KINDS[usize::from(b)];
                let desc = desc(b, a >= FIRST_TENSOR_OF_DEVICE_1, false);
                let volume = of.shape.iter().product::<i64>() as usize;
                let element = of.extents.iter().product::<usize>() / volume;
                let (cache, keeps_shells, piece) = (d % 2, d / 2 % 2, d / 4 % PIECES);
                format!("wrap({a}, {piece}, {desc}, {element}, {c}, {cache}, {keeps_shells});")
            }
            What::NewTensorBatch => {
                let capacity = CAPACITIES[usize::from(b) % CAPACITIES.len()];
                format!("ok(cvc_tensor_batch_create(caches[0], 0, {capacity}, stream({c}), &tensor_batches[{a}]));")
            }
            What::PushTensor => {
                self.tensor_batches[usize::from(a)].push(self.tensors[usize::from(b)]);
                format!("ok(cvc_tensor_batch_push(tensor_batches[{a}], &tensors[{b}], 1));")
            }
            What::SetTensor => {
                format!(
                    "ok(cvc_tensor_batch_set(tensor_batches[{a}], {}, tensors[{c}]));",
                    b % 4
                )
            }
            What::GetTensor => {
                let member = self.tensor_batches[usize::from(a)].get(usize::from(b % 4));
                self.tensors[usize::from(c)] = member.copied().unwrap_or(0);
                format!("get_tensor({a}, {}, {c});", b % 4)
            }
            What::PopTensors => {
                let members = &mut self.tensor_batches[usize::from(a)];
                members.truncate(members.len().saturating_sub(usize::from(b % 3)));
                format!("ok(cvc_tensor_batch_pop(tensor_batches[{a}], {}));", b % 3)
            }
            What::ClearTensors => {
                self.tensor_batches[usize::from(a)].clear();
                format!("ok(cvc_tensor_batch_clear(tensor_batches[{a}]));")
            }
            What::WriteRecords => format!("write_records({a}, {b});"),
            _ => {
                self.tensor_batches[usize::from(a)].clear();
                format!("ok(cvc_tensor_batch_release(tensor_batches[{a}]));")
            }
        }
    }

    fn other_statement(&mut self, step: &Step) -> String {
        let [a, b, c, d] = step.numbers;
        let device = a % 2;
        match step.what {
            What::NewStream => {
                self.streams[usize::from(a)] = b % 4;
                let device = u8::from(a == STREAM_OF_DEVICE_1);
                match b % 4 {
                    0 => format!("ok(cvc_stream_create({device}, 0, &streams[{a}]));"),
                    1 => format!("ok(cvc_stream_create({device}, CVC_STREAM_BLOCKING, &streams[{a}]));"),
                    2 => format!("streams[{a}] = foreign_stream({device});"),
                    _ => format!(
                        "streams[{a}] = foreign_stream({device}); ok(cvc_stream_register({device}, streams[{a}], 0));"
                    ),
                }
            }
            What::EndStream => match self.streams[usize::from(a)] {
                0 | 1 => format!("ok(cvc_stream_destroy(streams[{a}]));"),
                2 => format!("end_foreign_stream(streams[{a}]);"),
                _ => format!(
                    "ok(cvc_stream_unregister(streams[{a}])); end_foreign_stream(streams[{a}]);"
                ),
            },
            What::Register => {
                let device = u8::from(a == STREAM_OF_DEVICE_1);
                let whose = &mut self.streams[usize::from(a)];
                match *whose {
                    2 => {
                        *whose = 3;
                        format!("ok(cvc_stream_register({device}, streams[{a}], 0));")
                    }
                    _ => {
                        *whose = 2;
                        format!("ok(cvc_stream_unregister(streams[{a}]));")
                    }
                }
            }
            What::Alloc => {
                let RawKind { bytes, alignment } = RAW_KINDS[usize::from(b) % RAW_KINDS.len()];
                self.raws[usize::from(a)] = bytes;
                let device = u8::from(a == RAW_OF_DEVICE_1);
                format!(
                    "alloc({a}, {device}, {bytes}, {alignment}, {c}, {});",
                    d % 2
                )
            }
            What::Work => {
                let bytes = self.raws[usize::from(a)];
                format!("work({a}, {b}, {bytes}, {});", c % 2)
            }
            What::RecordStream => {
                format!("ok(cvc_mem_record_stream(cache_of[{a}], memories[{a}], stream({b})));")
            }
            What::Free => format!("ok(cvc_mem_free(cache_of[{a}], memories[{a}], stream({b})));"),
            What::FreeAfterEvent => {
                format!("ok(cvc_mem_free_after_event(cache_of[{a}], memories[{a}], events[{b}]));")
            }
            What::WaitStream => format!("ok(cvc_stream_wait_stream(stream({a}), stream({b})));"),
            What::RecordEvent => format!("ok(cvc_event_record(events[{a}], stream({b})));"),
            What::WaitEvent => format!("ok(cvc_stream_wait_event(stream({b}), events[{a}]));"),
            What::QueryEvent => format!("ok(cvc_event_query(events[{a}]));"),
            What::SyncEvent => format!("ok(cvc_event_synchronize(events[{a}], -1));"),
            What::QueryStream => format!("ok(cvc_stream_query(stream({a})));"),
            What::SyncStream => format!("ok(cvc_stream_synchronize(stream({a}), -1));"),
            What::BeginCapture => format!("ok(cvc_host_capture_begin(stream({a})));"),
            What::EndCapture => format!("ok(cvc_host_capture_end(stream({a})));"),
            What::SyncDevice => format!("ok(cvc_device_synchronize({device}, -1));"),
            What::SyncCache => format!("ok(cvc_cache_synchronize(own_cache({a}), {}, -1));", b % 2),
            What::SetLimit => {
                let bytes = LIMITS[usize::from(a) % LIMITS.len()];
                format!(
                    "ok(cvc_cache_set_limit(own_cache({b}), {}, {bytes}));",
                    c % 2
                )
            }
            What::Clear => {
                let scope = if a % 2 == 1 { "LOCAL" } else { "GLOBAL" };
                format!(
                    "ok(cvc_cache_clear(own_cache({b}), {}, CVC_SCOPE_{scope}));",
                    c % 2
                )
            }
            What::Trim => format!("ok(cvc_cache_trim(caches[0], {device}, 0));"),
            What::Count => format!(
                "uint64_t count; ok(cvc_cache_count(own_cache({a}), 0, CVC_SCOPE_GLOBAL, &count));"
            ),
            What::Detach => format!("ok(cvc_cache_thread_detach(own_cache({a})));"),
            What::NewCache => format!("new_cache({});", LIMITS[usize::from(a) % LIMITS.len()]),
            What::EndCache => "ok(cvc_cache_release(own_cache(1)));".into(),
            What::Fault => {
                let call = FAULTY_CALLS[usize::from(a) % FAULTY_CALLS.len()];
                let status = fault_status(call, c);
                format!(
                    "ok(cvc_host_fault(\"{call}\", {}, 1, CVC_STATUS_{status}));",
                    b % 3
                )
            }
            _ => "settle();".into(),
        }
    }
}

/// The status that a planned fault of this call gives.
pub fn fault_status(call: &str, number: u16) -> &'static str {
    match (call, number % 2) {
        ("memory_allocate", 0) => "OUT_OF_MEMORY",
        ("event_query" | "stream_query", 0) => "NOT_READY",
        _ => "DEVICE_ERROR",
    }
}

pub fn print(program: &Program) -> String {
    let mut known = Known::default();
    let (mut functions, mut body) = (String::new(), String::new());
    for (place, step) in program.steps.iter().enumerate() {
        if step.what == What::EndThread {
            let _ = writeln!(body, "  end_thread({});", step.thread);
            continue;
        }
        let statement = known.statement(step);
        let _ = writeln!(
            functions,
            "static void step_{place}(void) {{ {statement} }}"
        );
        let _ = match step.thread {
            0 => writeln!(body, "  step_{place}();"),
            thread => writeln!(body, "  on_thread({thread}, step_{place});"),
        };
        if program.watch == Watch::EachStep {
            body.push_str("  look();\n");
        }
    }
    format!(
        "{BEGIN}\n{functions}\nint main(void) {{\n  begin();\n{body}  look();\n  return 0;\n}}\n"
    )
}

/// The program as C compiles against the header. Skipped, by name, where there is no C compiler or no source tree.
pub fn assert_compiles(program: &Program) {
    static FILES: AtomicU32 = AtomicU32::new(0);
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    if !include.exists() {
        return println!("skipped: no header to compile against");
    }
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("cvc-printed-{}-{number}.c", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, print(program)).expect("a file can be written");
    let output = Command::new(&compiler)
        .args(["-std=gnu11", "-fsyntax-only", "-Wall", "-Werror", "-I"])
        .arg(&include)
        .arg(&file)
        .output();
    let _ = std::fs::remove_file(&file);
    match output {
        Err(error) => println!("skipped: no C compiler {compiler}: {error}"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{text}");
        }
    }
}
