//! Tests of the resize kernel's host build through its parameter block, and of how work is cut.

use super::*;
use crate::op::resize_table::ResizeFilter::{Cubic, Lanczos, Linear, Nearest};

extern "C" {
    fn cvc_host_resize_limit_isa(level: i32);
    fn cvc_host_resize_limit_scratch(bytes: usize);
}

/// Sets which form of the passes runs, for all threads: since all give the same bits, other tests do not mind.
fn with_form<R>(isa: i32, scratch: usize, run: impl FnOnce() -> R) -> R {
    // SAFETY: both only store a number.
    let set = |isa, scratch| unsafe {
        cvc_host_resize_limit_isa(isa);
        cvc_host_resize_limit_scratch(scratch);
    };
    set(isa, scratch);
    let result = run();
    set(i32::MAX, usize::MAX);
    result
}

const fn size(width: i32, height: i32) -> Size {
    Size { width, height }
}

/// Both passes shrink, the vertical one first, and both enlarge.
const SIZES: [(Size, Size); 3] = [
    (size(37, 29), size(11, 13)),
    (size(13, 40), size(10, 7)),
    (size(9, 8), size(23, 19)),
];

fn options(kind: DtypeKind, channels: u32, filter: ResizeFilter) -> ResizeOptions {
    ResizeOptions {
        kind,
        channels,
        filter,
        order: PassOrderRule::Pillow13,
        premultiply_alpha: false,
    }
}

fn bytes_of(kind: DtypeKind) -> usize {
    use DtypeKind::{F16, F64, S16, S8, U16, U8};
    match kind {
        U8 | S8 => 1,
        U16 | S16 | F16 => 2,
        F64 => 8,
        _ => 4,
    }
}

/// Interleaved pixels without gaps, `stride_n` apart.
fn view(data: u64, size: Size, channels: u32, bytes: usize) -> ResizeView {
    let (bytes, channels) = (bytes as i64, i64::from(channels));
    let row = bytes * channels * i64::from(size.width);
    ResizeView {
        data,
        stride_n: row * i64::from(size.height),
        stride_c: bytes,
        stride_h: row,
        stride_w: bytes * channels,
    }
}

fn samples(size: Size, channels: u32) -> usize {
    size.width as usize * size.height as usize * channels as usize
}

/// Calls the kernel for `batch` images in tasks of `items_per_task`, 0 for what `finish` says.
fn resize(
    options: ResizeOptions,
    batch: i32,
    (src_size, dst_size): (Size, Size),
    src: &[u8],
    items_per_task: i64,
) -> Vec<u8> {
    let bytes = bytes_of(options.kind);
    let image = samples(dst_size, options.channels) * bytes;
    let mut dst = vec![0xa5; image * batch as usize];
    let mut resize = Resize::new(options, batch).unwrap();
    let tables = resize
        .tables(src_size, dst_size)
        .map(|key| key.map(|key| key.compute().unwrap()));
    let placed = |axis: usize| tables[axis].as_ref().map(placed);
    resize
        .push(&Geometry {
            src: view(src.as_ptr() as u64, src_size, options.channels, bytes),
            dst: view(dst.as_mut_ptr() as u64, dst_size, options.channels, bytes),
            src_size,
            dst_size,
            horizontal: placed(0),
            vertical: placed(1),
        })
        .unwrap();
    let finished = resize.finish(2);
    let step = match items_per_task {
        0 => finished.items_per_task,
        step => step,
    };
    let mut begin = 0;
    while begin < finished.items {
        let end = (begin + step).min(finished.items);
        // SAFETY: the block's views and tables are the vectors above, which outlive the call.
        unsafe {
            (RESIZE_KERNELS[0].host)(finished.params().as_bytes().as_ptr().cast(), begin, end)
        };
        begin = end;
    }
    dst
}

fn placed(table: &ResizeTable) -> PlacedTable<'_> {
    PlacedTable {
        address: table.as_bytes().as_ptr() as u64,
        header: table.header(),
    }
}

fn random_words(count: usize) -> impl Iterator<Item = u32> {
    let mut state = 1u32;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        state
    })
    .take(count)
}

fn random_pixels(kind: DtypeKind, count: usize) -> Vec<u8> {
    let words = random_words(count);
    match kind {
        DtypeKind::U8 => words.map(|word| (word >> 16) as u8).collect(),
        DtypeKind::S32 => words
            .flat_map(|word| (word as i32 >> 4).to_ne_bytes())
            .collect(),
        DtypeKind::F32 => words
            .flat_map(|word| ((word >> 8) as f32 / 65536.0).to_ne_bytes())
            .collect(),
        DtypeKind::F64 => words
            .flat_map(|word| (f64::from(word) / 65537.0).to_ne_bytes())
            .collect(),
        _ if bytes_of(kind) == 1 => words.map(|word| (word >> 16) as u8).collect(),
        // Halves among them: the highest exponent is left out.
        DtypeKind::F16 => words
            .flat_map(|word| ((word >> 16) as u16 & 0xbfff).to_ne_bytes())
            .collect(),
        _ => words
            .flat_map(|word| ((word >> 16) as u16).to_ne_bytes())
            .collect(),
    }
}

fn fnv(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100000001b3)
    })
}

/// The hash of all filters and sizes, in the order that the expected values were made in with Pillow itself.
fn hash_of_all(change: impl Fn(ResizeFilter) -> ResizeOptions) -> u64 {
    let filters = [
        Nearest,
        Linear,
        Cubic,
        Lanczos,
        ResizeFilter::Hamming,
        ResizeFilter::Box,
    ];
    let mut hash = 0xcbf29ce484222325;
    for filter in filters {
        for sizes in SIZES {
            let options = change(filter);
            let src = random_pixels(options.kind, samples(sizes.0, options.channels));
            hash = fnv(hash, &resize(options, 1, sizes, &src, 0));
        }
    }
    hash
}

#[test]
fn results_are_pillows_own() {
    let plain = |kind| move |filter| options(kind, 1, filter);
    let cases = [
        (DtypeKind::U8, 0x5e38fb096763e833),
        (DtypeKind::U16, 0x78d33bd294beb9de),
        (DtypeKind::S32, 0xdf606d791f7e26b4),
        (DtypeKind::F32, 0x55127a2598d50185),
    ];
    for isa in 0..3 {
        for (kind, expected) in cases {
            let found = with_form(isa, usize::MAX, || hash_of_all(plain(kind)));
            assert_eq!(found, expected, "{kind:?}, form {isa}");
        }
    }
    let pillow_12 = |filter| ResizeOptions {
        order: PassOrderRule::Pillow12,
        ..options(DtypeKind::U8, 1, filter)
    };
    assert_eq!(hash_of_all(pillow_12), 0xd2136072e9b6c43f);
    let premultiplied = |filter| ResizeOptions {
        premultiply_alpha: true,
        ..options(DtypeKind::U8, 4, filter)
    };
    assert_eq!(hash_of_all(premultiplied), 0xc71b949a396e414e);
}

#[test]
fn every_form_and_every_cut_gives_the_same_bits() {
    use DtypeKind::{F16, F32, F64, S16, S32, S8, U16, U8};
    for kind in [U8, S8, U16, S16, S32, F16, F32, F64] {
        for channels in 1..=4 {
            for filter in [Linear, Lanczos] {
                for sizes in SIZES {
                    let options = options(kind, channels, filter);
                    let src = random_pixels(kind, 2 * samples(sizes.0, channels));
                    let run = |isa, scratch, step| {
                        with_form(isa, scratch, || resize(options, 2, sizes, &src, step))
                    };
                    let plain = run(0, usize::MAX, i64::MAX / 2);
                    for (isa, scratch, step) in [
                        (1, usize::MAX, 0),
                        (2, usize::MAX, 1),
                        (2, usize::MAX, 5),
                        (2, 6000, 0),
                        (2, 0, 7),
                    ] {
                        let found = run(isa, scratch, step);
                        assert!(
                            found == plain,
                            "{kind:?} x {channels}, {filter:?}, {sizes:?}: form {isa}, {scratch} bytes, step {step}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn a_size_that_does_not_change_is_copied() {
    let same = (size(5, 4), size(5, 4));
    let src = random_pixels(DtypeKind::F16, samples(same.0, 3));
    assert_eq!(
        resize(options(DtypeKind::F16, 3, Cubic), 1, same, &src, 0),
        src
    );
    let with_alpha = ResizeOptions {
        premultiply_alpha: true,
        ..options(DtypeKind::U8, 4, Cubic)
    };
    let src = random_pixels(DtypeKind::U8, samples(same.0, 4));
    assert_eq!(resize(with_alpha, 1, same, &src, 0), src);
}

#[test]
fn items_cover_all_rows_and_cost_about_the_same() {
    // A large and a small image: the large one gets an item a row, the small one fewer.
    let options = options(DtypeKind::U8, 3, Linear);
    let (large, small, out) = (size(1920, 1080), size(96, 54), size(224, 224));
    let mut made = Resize::new(options, 1).unwrap();
    for src_size in [large, small] {
        let tables = made
            .tables(src_size, out)
            .map(|key| key.map(|key| key.compute().unwrap()));
        let view = view(64, src_size, 3, 1);
        made.push(&Geometry {
            src: view,
            dst: view,
            src_size,
            dst_size: out,
            horizontal: tables[0].as_ref().map(placed),
            vertical: tables[1].as_ref().map(placed),
        })
        .unwrap();
    }
    let finished = made.finish(2);
    let [of_large, of_small] = [0, 1].map(|index| finished.params.images[index].items);
    assert_eq!(of_large, 224);
    assert!((1..60).contains(&of_small), "{of_small}");
    assert_eq!(finished.items, i64::from(of_large + of_small));
    let tasks = (finished.items as u64).div_ceil(finished.items_per_task as u64);
    assert_eq!(tasks, 8);
}

#[test]
fn small_work_is_one_task_and_dear_cuts_are_few() {
    assert_eq!(tasks_for(16, TASK_COST * 0.9, 0.0), 1);
    assert_eq!(tasks_for(2, TASK_COST * 100.0, 0.0), 8);
    assert_eq!(tasks_for(16, TASK_COST * 3.0, 0.0), 3);
    // Six cuts add an eighth exactly.
    let work = TASK_COST * 100.0;
    assert_eq!(tasks_for(2, work, work / 48.0), 6);
    assert_eq!(tasks_for(2, work, work / 40.0), 4);
    // Cuts that cost as much as the work gain nothing.
    assert_eq!(tasks_for(2, work, work), 1);
}

/// Tiles are counted in 32 bits: batches beyond that are resized sample by sample.
#[test]
fn a_batch_of_more_bands_than_can_be_counted_is_not_tiled() {
    let (src, dst) = (size(2, 2), size(1, 1));
    for (batch, tiled) in [(1 << 20, true), (i32::MAX, false)] {
        let options = options(DtypeKind::U8, 4, ResizeFilter::Linear);
        let mut resize = Resize::new(options, batch).expect("it is resized");
        let keys = resize.tables(src, dst);
        let tables = keys.map(|key| key.map(|key| key.compute().expect("it is small")));
        let [horizontal, vertical] = &tables;
        // In planes, each with a band of its own.
        let planes = |size: Size| ResizeView {
            data: 1 << 20,
            stride_n: 64,
            stride_c: 16,
            stride_h: i64::from(size.width),
            stride_w: 1,
        };
        let geometry = Geometry {
            src: planes(src),
            dst: planes(dst),
            src_size: src,
            dst_size: dst,
            horizontal: horizontal.as_ref().map(placed),
            vertical: vertical.as_ref().map(placed),
        };
        resize.push(&geometry).expect("it fits");
        assert_eq!(resize.finish(1).is_tiled(), tiled, "{batch} images");
    }
}

#[test]
fn what_the_kernel_does_not_do_is_refused() {
    let status =
        |options: ResizeOptions, batch| Resize::new(options, batch).map_err(|error| error.status);
    let refused = |options, batch| status(options, batch).unwrap_err();
    let u8_linear = |channels| options(DtypeKind::U8, channels, Linear);
    assert_eq!(refused(u8_linear(0), 1), Status::InvalidShape);
    assert_eq!(refused(u8_linear(5), 1), Status::InvalidShape);
    assert_eq!(refused(u8_linear(3), 0), Status::InvalidShape);
    let u32_with = |filter| options(DtypeKind::U32, 1, filter);
    assert_eq!(refused(u32_with(Linear), 1), Status::NotSupported);
    assert!(status(u32_with(Nearest), 1).is_ok());
    let with_alpha = |kind, channels| ResizeOptions {
        premultiply_alpha: true,
        ..options(kind, channels, Linear)
    };
    assert_eq!(
        refused(with_alpha(DtypeKind::U8, 3), 1),
        Status::NotSupported
    );
    assert_eq!(
        refused(with_alpha(DtypeKind::U16, 4), 1),
        Status::NotSupported
    );
    assert!(status(with_alpha(DtypeKind::U8, 2), 1).is_ok());
}

#[test]
fn a_table_of_another_geometry_is_refused_and_changes_nothing() {
    let mut made = Resize::new(options(DtypeKind::U8, 1, Linear), 1).unwrap();
    let (src_size, dst_size) = (size(8, 6), size(4, 6));
    let [horizontal, vertical] = made.tables(src_size, dst_size);
    assert_eq!(vertical, None, "the height does not change");
    let right = horizontal.unwrap().compute().unwrap();
    let wrong = ResizeTable::new(9, 4, Linear, TableForm::Fixed).unwrap();
    let geometry = |horizontal, vertical| Geometry {
        src: view(64, src_size, 1, 1),
        dst: view(64, dst_size, 1, 1),
        src_size,
        dst_size,
        horizontal,
        vertical,
    };
    for (horizontal, vertical) in [
        (None, None),
        (Some(placed(&wrong)), None),
        (Some(placed(&right)), Some(placed(&right))),
        (
            Some(PlacedTable {
                address: 0,
                ..placed(&right)
            }),
            None,
        ),
    ] {
        let error = made.push(&geometry(horizontal, vertical)).unwrap_err();
        assert_eq!(error.status, Status::InvalidArgument);
        assert!(made.is_empty());
    }
    for count in 1..=MAX_IMAGES {
        made.push(&geometry(Some(placed(&right)), None)).unwrap();
        assert_eq!(made.len(), count);
    }
    let error = made
        .push(&geometry(Some(placed(&right)), None))
        .unwrap_err();
    assert_eq!(error.status, Status::CapacityExceeded);
}
