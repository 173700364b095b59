//! A program as data: steps of plain numbers, which name what they use by its slot. A step whose slot is empty does nothing,
//! so that any part of a program is a program.

use std::fmt;
use std::str::FromStr;

pub const TENSORS: u16 = 16;
/// Tensors in slots from here on are on device 1, the others on device 0.
pub const FIRST_TENSOR_OF_DEVICE_1: u16 = 14;
pub const STREAMS: u16 = 12;
/// The stream in this slot is on device 1, the others on device 0.
pub const STREAM_OF_DEVICE_1: u16 = 11;
/// Beyond the slots: the default streams, and no stream at all.
pub const LEGACY: u16 = 12;
pub const PER_THREAD: u16 = 13;
pub const NO_STREAM: u16 = 14;
pub const EVENTS: u16 = 2;
pub const EXPORTS: u16 = 3;
pub const IMAGES: u16 = 4;
pub const BATCHES: u16 = 3;
/// Pieces of raw memory.
pub const RAWS: u16 = 6;
/// The one in this slot is on device 1, the others on device 0.
pub const RAW_OF_DEVICE_1: u16 = 5;
/// Pieces of memory of the program's own, for wraps.
pub const PIECES: u16 = 4;
pub const THREADS: u16 = 4;

macro_rules! kinds {
    ($($name:ident $text:literal $arguments:literal)*) => {
        /// What a step does; its arguments are named in `run.rs`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum What { $($name),* }

        impl What {
            pub const ALL: &'static [What] = &[$(What::$name),*];

            pub fn text(self) -> &'static str {
                match self { $(What::$name => $text),* }
            }

            /// How many of the numbers count.
            pub fn arguments(self) -> usize {
                match self { $(What::$name => $arguments),* }
            }
        }
    };
}

kinds! {
    HostStep "host_step" 1
    HostAll "host_all" 0
    NewStream "new_stream" 2
    EndStream "end_stream" 1
    Register "register" 1
    Create "create" 4
    Wrap "wrap" 4
    ReleaseTensor "release_tensor" 1
    View "view" 3
    Upload "upload" 3
    Fill "fill" 2
    Flip "flip" 3
    FlipNew "flip_new" 4
    Copy "copy" 3
    Download "download" 2
    Launch "launch" 3
    Export "export" 4
    EndExport "end_export" 1
    NewImage "new_image" 3
    ReleaseImage "release_image" 1
    ImageView "image_view" 2
    NewBatch "new_batch" 3
    Push "push" 2
    ReleaseBatch "release_batch" 1
    FlipBatch "flip_batch" 4
    NewTensorBatch "new_tensor_batch" 3
    PushTensor "push_tensor" 2
    SetTensor "set_tensor" 3
    GetTensor "get_tensor" 3
    PopTensors "pop_tensors" 2
    ClearTensors "clear_tensors" 1
    WriteRecords "write_records" 2
    ReleaseTensorBatch "release_tensor_batch" 1
    Alloc "alloc" 4
    Work "work" 4
    RecordStream "record_stream" 2
    Free "free" 2
    FreeAfterEvent "free_after_event" 2
    WaitStream "wait_stream" 2
    RecordEvent "record_event" 2
    WaitEvent "wait_event" 2
    QueryEvent "query_event" 1
    SyncEvent "sync_event" 1
    QueryStream "query_stream" 1
    SyncStream "sync_stream" 1
    BeginCapture "begin_capture" 1
    EndCapture "end_capture" 1
    SyncDevice "sync_device" 1
    SyncCache "sync_cache" 2
    SetLimit "set_limit" 3
    Clear "clear" 3
    Trim "trim" 1
    Count "count" 1
    EndThread "end_thread" 0
    Detach "detach" 1
    NewCache "new_cache" 1
    EndCache "end_cache" 0
    Fault "fault" 3
    Settle "settle" 0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    pub what: What,
    /// Which thread takes it; 0 is the one that runs the program.
    pub thread: u16,
    pub numbers: [u16; 4],
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}@{}", self.what.text(), self.thread)?;
        for number in &self.numbers[..self.what.arguments()] {
            write!(f, " {number}")?;
        }
        Ok(())
    }
}

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Result<Step, String> {
        let bad = || format!("{text:?} is no step");
        let mut words = text.split_whitespace();
        let (name, thread) = words
            .next()
            .and_then(|w| w.split_once('@'))
            .ok_or_else(bad)?;
        let named = |what: &&What| what.text() == name;
        let what = *What::ALL.iter().find(named).ok_or_else(bad)?;
        let mut numbers = [0; 4];
        for (number, word) in numbers.iter_mut().zip(words) {
            *number = word.parse().map_err(|_| bad())?;
        }
        let thread = thread.parse().map_err(|_| bad())?;
        Ok(Step {
            what,
            thread,
            numbers,
        })
    }
}

/// How much the runner looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watch {
    /// After each step every stream is asked, so that the library knows all that can be known, and everything it decides is
    /// compared with the model.
    EachStep,
    /// Nothing is asked that the program does not ask: the library decides by what it happens to know. Accounts are compared
    /// where the program settles.
    Seldom,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub watch: Watch,
    pub steps: Vec<Step>,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        writeln!(f, "watch {:?}", self.watch)?;
        for step in &self.steps {
            writeln!(f, "{step}")?;
        }
        Ok(())
    }
}

impl FromStr for Program {
    type Err = String;

    fn from_str(text: &str) -> Result<Program, String> {
        let mut lines = text.lines();
        let watch = match lines.next() {
            Some("watch EachStep") => Watch::EachStep,
            Some("watch Seldom") => Watch::Seldom,
            other => return Err(format!("{other:?} is no beginning of a program")),
        };
        let steps = lines.map(Step::from_str).collect::<Result<_, _>>()?;
        Ok(Program { watch, steps })
    }
}

/// What can be allocated. A class is what may take each other's memory.
pub struct Kind {
    pub class: u8,
    /// Charged bytes, all multiples of 512.
    pub bytes: u64,
    /// As a flip sees it: what repeats, rows, columns, and the bytes of an element.
    pub extents: [usize; 4],
    pub shape: &'static [i64],
    pub dtype: &'static str,
    pub layout: &'static str,
}

const fn tensor(
    class: u8,
    bytes: u64,
    extents: [usize; 4],
    shape: &'static [i64],
    dtype: &'static str,
    layout: &'static str,
) -> Kind {
    Kind {
        class,
        bytes,
        extents,
        shape,
        dtype,
        layout,
    }
}

/// Rows start at multiples of 32 bytes, memory at multiples of 512.
pub const TENSOR_KINDS: [Kind; 10] = [
    tensor(0, 512, [1, 8, 8, 1], &[8, 8, 1], "U8", "HWC"),
    tensor(0, 1024, [1, 16, 64, 1], &[16, 64, 1], "U8", "HWC"),
    tensor(0, 2048, [1, 64, 16, 1], &[64, 16, 1], "U8", "HWC"),
    tensor(0, 1024, [1, 9, 40, 1], &[9, 40, 1], "U8", "HWC"),
    tensor(0, 9216, [1, 96, 96, 1], &[96, 96, 1], "U8", "HWC"),
    tensor(1, 512, [1, 8, 16, 4], &[8, 16, 1], "F32", "HWC"),
    tensor(1, 2048, [1, 16, 16, 8], &[16, 16, 2], "F32", "HWC"),
    tensor(2, 1024, [2, 16, 32, 1], &[1, 2, 16, 32], "U8", "NCHW"),
    tensor(3, 512, [1, 1, 4, 4], &[4], "S32", ""),
    tensor(0, 25600, [1, 160, 160, 1], &[160, 160, 1], "U8", "HWC"),
];
/// Four flip codes.
pub const CODES: u16 = 8;

/// Images, by width, height and format; their classes come after those of the tensors.
pub const IMAGE_KINDS: [Kind; 3] = [
    tensor(4, 512, [1, 8, 16, 1], &[16, 8], "U8", ""),
    tensor(4, 1536, [1, 20, 40, 1], &[40, 20], "U8", ""),
    tensor(5, 1024, [1, 16, 20, 3], &[20, 16], "RGB8", ""),
];

/// Raw memory, a class of its own for each alignment.
#[derive(Clone, Copy)]
pub struct RawKind {
    pub bytes: usize,
    pub alignment: usize,
}

const fn raw(bytes: usize, alignment: usize) -> RawKind {
    RawKind { bytes, alignment }
}

pub const RAW_KINDS: [RawKind; 8] = [
    raw(512, 0),
    raw(700, 0),
    raw(1024, 256),
    raw(2000, 512),
    raw(9000, 0),
    raw(1000, 2048),
    raw(2048, 2048),
    raw(1, 1024),
];

/// Capacities of batches; each is a class of its own.
pub const CAPACITIES: [i32; 2] = [2, 4];

/// The bytes of the records of a batch of images, and of one of tensors.
pub fn batch_bytes(capacity: i32) -> u64 {
    capacity as u64 * 160
}

pub fn tensor_batch_bytes(capacity: i32) -> u64 {
    capacity as u64 * 256
}

pub const LIMITS: [i64; 6] = [0, 2048, 10_000, 40_000, 1 << 16, 1 << 20];
/// What the limit of the default cache is when a program begins.
pub const FIRST_LIMIT: i64 = 1 << 16;

/// The calls of the backend that are made to fail.
pub const FAULTY_CALLS: [&str; 11] = [
    "event_record",
    "stream_wait_event",
    "event_query",
    "stream_query",
    "memory_allocate",
    "memory_free",
    "launch",
    "copy_2d",
    "fill_zero_2d",
    "event_synchronize",
    "stream_destroy",
];
