//! Chains of preprocess against the operators called one after the other on each image by itself, bit for bit.

use std::ffi::c_char;

use cvc::ffi::*;

use super::library::*;
use super::models::*;

/// Elements as their bits, and what they are.
#[derive(Clone, Debug)]
pub struct Picture {
    pub dtype: u32,
    /// HWC.
    pub bits: Elements<u64>,
}

/// Base or scale.
#[derive(Clone)]
enum Factor {
    Values(Vec<f32>),
    /// NHWC, floats by their bits.
    Tensor(Elements<u64>),
}

struct Normalize {
    base: Factor,
    scale: Factor,
    flags: u32,
    dst_dtype: u32,
}

/// What one call does.
pub struct Chain {
    pub crops: Vec<cvc_crop_t>,
    pub height: usize,
    pub width: usize,
    pub filter: i32,
    pub resize_flags: u32,
    pub flip_code: Option<i32>,
    pub swap: bool,
    /// To a dtype, with alpha and beta and a rounding.
    pub convert: Option<(u32, f64, f64, i32)>,
    normalize: Option<Normalize>,
    pub color_matrix: i32,
    pub more_flags: u32,
}

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 += 1;
        noise(0x5eed)(self.0 as usize)
    }

    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }

    pub fn chance(&mut self) -> bool {
        self.below(2) == 0
    }
}

const DTYPES: [u32; 8] = [
    CVC_DTYPE_U8,
    CVC_DTYPE_S8,
    CVC_DTYPE_U16,
    CVC_DTYPE_S16,
    CVC_DTYPE_S32,
    CVC_DTYPE_F16,
    CVC_DTYPE_F32,
    CVC_DTYPE_F64,
];
const FILTERS: [i32; 6] = [
    CVC_FILTER_NEAREST,
    CVC_FILTER_LINEAR,
    CVC_FILTER_CUBIC,
    CVC_FILTER_LANCZOS,
    CVC_FILTER_HAMMING,
    CVC_FILTER_BOX,
];

/// A plausible element of a dtype.
fn element(dtype: u32, noise: u64) -> u64 {
    let value = (noise % 4001) as f64 * 0.25 - 500.0;
    match dtype {
        CVC_DTYPE_F32 => u64::from((value as f32).to_bits()),
        CVC_DTYPE_F64 => value.to_bits(),
        // Halves below 2, of either sign.
        CVC_DTYPE_F16 => noise & 0xbfff,
        _ => noise & (u64::MAX >> (64 - 8 * bytes_of(dtype))),
    }
}

pub fn to_bytes(bits: &Elements<u64>, dtype: u32) -> Vec<u8> {
    let size = bytes_of(dtype);
    let data = bits.data.iter();
    data.flat_map(|value| value.to_le_bytes()[..size].to_vec())
        .collect()
}

fn from_bytes(layout: &'static str, shape: &[i64], dtype: u32, bytes: &[u8]) -> Elements<u64> {
    let size = bytes_of(dtype);
    Elements::make(layout, shape, |i| {
        let mut value = [0; 8];
        value[..size].copy_from_slice(&bytes[i * size..][..size]);
        u64::from_le_bytes(value)
    })
}

pub fn upload(stream: &Stream, bits: &Elements<u64>, dtype: u32) -> Tensor {
    let data = to_bytes(bits, dtype);
    Tensor::of(stream, bits.layout, &bits.shape, dtype, &data)
}

fn download(stream: &Stream, tensor: &Tensor, layout: &'static str) -> Picture {
    let dtype = tensor.data().dtype;
    let bytes: Vec<u8> = tensor.take(stream);
    Picture {
        dtype,
        bits: from_bytes(layout, &tensor.shape(), dtype, &bytes),
    }
}

impl Picture {
    pub fn noise(dtype: u32, [height, width, channels]: [usize; 3], seed: u64) -> Picture {
        let mut next = noise(seed);
        let shape = [height as i64, width as i64, channels as i64];
        Picture {
            dtype,
            bits: Elements::make("HWC", &shape, |i| element(dtype, next(i))),
        }
    }

    fn cropped(&self, crop: &cvc_crop_t) -> Picture {
        let (x, y) = (crop.x as usize, crop.y as usize);
        let shape = [
            i64::from(crop.height),
            i64::from(crop.width),
            self.bits.shape[2],
        ];
        Picture {
            dtype: self.dtype,
            bits: Elements::by_place("HWC", &shape, |[n, c, h, w]| {
                self.bits.at([n, c, h + y, w + x])
            }),
        }
    }

    fn swapped(&self) -> Picture {
        Picture {
            dtype: self.dtype,
            bits: Elements::by_place("HWC", &self.bits.shape, |[n, c, h, w]| {
                self.bits.at([n, [2, 1, 0, 3][c], h, w])
            }),
        }
    }
}

impl Factor {
    fn random(
        random: &mut Random,
        [images, height, width, channels]: [usize; 4],
        tensors: bool,
    ) -> Factor {
        let mut value = |scale: f32| (random.below(200) as f32 - 90.0) * scale;
        if !tensors {
            let count = if value(1.0) > 0.0 { 1 } else { channels };
            return Factor::Values((0..count).map(|_| value(0.37)).collect());
        }
        let shape = [images, height, width, channels].map(|extent| {
            let whole = value(1.0) > 0.0;
            if whole {
                extent as i64
            } else {
                1
            }
        });
        Factor::Tensor(Elements::make("NHWC", &shape, |_| {
            u64::from(value(0.37).to_bits())
        }))
    }

    /// That of one image.
    fn of_image(&self, image: usize) -> Factor {
        let Factor::Tensor(all) = self else {
            return self.clone();
        };
        let mut shape = all.shape.clone();
        let first = if shape[0] == 1 { 0 } else { image };
        shape[0] = 1;
        Factor::Tensor(Elements::by_place("NHWC", &shape, |[_, c, h, w]| {
            all.at([first, c, h, w])
        }))
    }
}

impl Normalize {
    /// For the C interface, with the tensors that it names.
    fn params(&self, stream: &Stream) -> (cvc_normalize_params_t, Vec<Tensor>) {
        let mut params = normalize_params(&[], &[]);
        (params.flags, params.dst_dtype) = (self.flags, self.dst_dtype);
        (params.epsilon, params.global_scale, params.global_shift) = (0.75, 1.5, -0.25);
        let mut tensors = Vec::new();
        let mut set = |factor: &Factor,
                       tensor: &mut cvc_tensor_t,
                       values: &mut [f32; 4],
                       count: &mut i32| match factor {
            Factor::Values(own) => {
                values[..own.len()].copy_from_slice(own);
                *count = own.len() as i32;
            }
            Factor::Tensor(bits) => {
                tensors.push(upload(stream, bits, CVC_DTYPE_F32));
                *tensor = tensors[tensors.len() - 1].0;
            }
        };
        let cvc_normalize_params_t {
            base,
            base_values,
            base_count,
            scale,
            scale_values,
            scale_count,
            ..
        } = &mut params;
        set(&self.base, base, base_values, base_count);
        set(&self.scale, scale, scale_values, scale_count);
        (params, tensors)
    }
}

impl Chain {
    /// Any steps for images of these sizes (height, width), each with or without.
    pub fn random(random: &mut Random, sizes: &[(usize, usize)], channels: usize) -> Chain {
        let (mut crops, count) = (Vec::new(), random.pick(&[0, 1, sizes.len()]));
        for i in 0..count {
            let all = if count == 1 { sizes } else { &sizes[i..i + 1] };
            let least = |of: fn(&(usize, usize)) -> usize| all.iter().map(of).min().unwrap_or(1);
            let mut side = |length: usize| {
                let start = random.below(length);
                (start as i32, 1 + random.below(length - start) as i32)
            };
            let (y, height) = side(least(|size| size.0));
            let (x, width) = side(least(|size| size.1));
            crops.push(cvc_crop_t {
                x,
                y,
                width,
                height,
            });
        }
        let keeps_size = random.below(3) == 0;
        let first = match crops.first() {
            Some(crop) => (crop.height as usize, crop.width as usize),
            None => sizes[0],
        };
        let (height, width) = match keeps_size {
            true => first,
            false => (1 + random.below(30), 1 + random.below(30)),
        };
        let extents = [sizes.len(), height, width, channels];
        let normalize = random.chance().then(|| Normalize {
            base: {
                let tensors = random.chance();
                Factor::random(random, extents, tensors)
            },
            scale: {
                let tensors = random.chance();
                Factor::random(random, extents, tensors)
            },
            flags: random.below(2) as u32,
            dst_dtype: random.pick(&DTYPES),
        });
        Chain {
            crops,
            height,
            width,
            filter: random.pick(&FILTERS),
            resize_flags: random.below(2) as u32,
            flip_code: random.chance().then(|| random.pick(&[-1, 0, 1])),
            swap: channels > 2 && random.chance(),
            convert: random.chance().then(|| {
                let (alpha, beta) = random.pick(&[(1.0, 0.0), (0.013, -1.5), (-3.0, 70.25)]);
                (random.pick(&DTYPES), alpha, beta, random.below(2) as i32)
            }),
            normalize,
            color_matrix: random.below(2) as i32,
            more_flags: 0,
        }
    }

    /// Enough to find a failing case again.
    fn words(&self) -> String {
        let crops: Vec<_> = self
            .crops
            .iter()
            .map(|c| (c.x, c.y, c.width, c.height))
            .collect();
        format!(
            "crops {crops:?}, to {}x{} with filter {} and flags {}, flip {:?}, swap {}, convert {:?}, normalize {}",
            self.width,
            self.height,
            self.filter,
            self.resize_flags,
            self.flip_code,
            self.swap,
            self.convert,
            self.normalize.is_some()
        )
    }

    pub fn makes_alike(&self) -> bool {
        self.convert.is_some() || self.normalize.is_some()
    }

    /// The result's dtype for a source of that one.
    fn dtype(&self, dtype: u32) -> u32 {
        let converted = self.convert.map_or(dtype, |(dtype, ..)| dtype);
        self.normalize
            .as_ref()
            .map_or(converted, |normalize| normalize.dst_dtype)
    }

    /// Calls `call` with the parameters of the C interface.
    fn with_params<T>(
        &self,
        stream: &Stream,
        call: impl FnOnce(&cvc_preprocess_params_t) -> T,
    ) -> T {
        let normalize = self.normalize.as_ref().map(|own| own.params(stream));
        let mut params = preprocess_params();
        params.flags = self.more_flags;
        if let Some(code) = self.flip_code {
            params.flags |= CVC_PREPROCESS_FLIP;
            params.flip_code = code;
        }
        if self.swap {
            params.flags |= CVC_PREPROCESS_SWAP_CHANNELS;
        }
        (params.filter, params.resize_flags) = (self.filter, self.resize_flags);
        (params.crops, params.crop_count) = (self.crops.as_ptr(), self.crops.len() as i32);
        if let Some((dtype, alpha, beta, round)) = self.convert {
            (params.convert_dtype, params.alpha) = (dtype, alpha);
            (params.beta, params.round) = (beta, round);
        }
        params.color_matrix = self.color_matrix;
        if let Some((own, _tensors)) = &normalize {
            params.normalize = own;
        }
        call(&params)
    }

    /// One image by the operators, one after the other.
    fn image(&self, stream: &Stream, picture: &Picture, index: usize) -> Picture {
        let mut picture = match self.crops.len() {
            0 => picture.clone(),
            1 => picture.cropped(&self.crops[0]),
            _ => picture.cropped(&self.crops[index]),
        };
        let s = stream.0;
        let step = |picture: &Picture, call: &dyn Fn(cvc_tensor_t, *mut cvc_tensor_t) -> i32| {
            let src = upload(stream, &picture.bits, picture.dtype);
            download(stream, &new_tensor(|dst| call(src.0, dst)), "HWC")
        };
        let (height, width) = (self.height as i64, self.width as i64);
        // SAFETY: live handles, structs and places for results, in all of them.
        unsafe {
            if picture.bits.shape[..2] != [height, width] {
                picture = step(&picture, &|src, dst| {
                    let (filter, flags) = (self.filter, self.resize_flags);
                    cvc_op_pillow_resize_new(s, src, height, width, filter, flags, dst)
                });
            }
            if let Some(code) = self.flip_code {
                picture = step(&picture, &|src, dst| cvc_op_flip_new(s, src, code, dst));
            }
            if self.swap {
                picture = picture.swapped();
            }
            if let Some((dtype, alpha, beta, round)) = self.convert {
                picture = step(&picture, &|src, dst| {
                    cvc_op_convert_to_new(s, src, dtype, alpha, beta, round, dst)
                });
            }
            if let Some(normalize) = &self.normalize {
                let of_image = Normalize {
                    base: normalize.base.of_image(index),
                    scale: normalize.scale.of_image(index),
                    ..*normalize
                };
                let (params, _tensors) = of_image.params(stream);
                picture = step(&picture, &|src, dst| {
                    cvc_op_normalize_new(s, src, &params, dst)
                });
            }
        }
        picture
    }

    /// All of them, reformatted.
    fn expected(&self, stream: &Stream, pictures: &[Picture], layout: &'static str) -> Picture {
        let done: Vec<Picture> = pictures
            .iter()
            .enumerate()
            .map(|(i, picture)| self.image(stream, picture, i))
            .collect();
        let shape = [&[done.len() as i64][..], &done[0].bits.shape].concat();
        let whole =
            Elements::by_place("NHWC", &shape, |[n, c, h, w]| done[n].bits.at([0, c, h, w]));
        let last = match layout.len() {
            4 => "NHWC",
            _ => "HWC",
        };
        let src = upload(stream, &whole.in_layout(last), done[0].dtype);
        let text = text(layout);
        // SAFETY: a live handle, a text and a place for the result.
        let reformatted =
            new_tensor(|dst| unsafe { cvc_op_reformat_new(stream.0, src.0, text.as_ptr(), dst) });
        download(stream, &reformatted, layout)
    }
}

/// What both forms of a call give is what is expected. `into` and `new` are the calls.
#[track_caller]
pub fn check(
    stream: &Stream,
    chain: &Chain,
    pictures: &[Picture],
    layout: &'static str,
    into: impl FnOnce(cvc_tensor_t, &cvc_preprocess_params_t) -> i32,
    new: impl FnOnce(&cvc_preprocess_params_t, i64, i64, *const c_char, *mut cvc_tensor_t) -> i32,
) {
    let expected = chain.expected(stream, pictures, layout);
    let row_align = if chain.width % 2 == 0 { 1 } else { 64 };
    let dtype = chain.dtype(pictures[0].dtype);
    assert_eq!(dtype, expected.dtype);
    let dst = Tensor::on(0, layout, &expected.bits.shape, dtype, row_align);
    let text = text(layout);
    let (height, width) = (chain.height as i64, chain.width as i64);
    let made = chain.with_params(stream, |params| {
        ok(into(dst.0, params));
        new_tensor(|dst| new(params, height, width, text.as_ptr(), dst))
    });
    for result in [&dst, &made] {
        assert_eq!(result.layout(), layout);
        let found = download(stream, result, layout);
        assert_eq!(found.dtype, expected.dtype);
        assert!(found.bits == expected.bits, "{}", chain.words());
    }
}

/// Pictures of one size and dtype as a tensor of that layout.
fn tensor_of(stream: &Stream, pictures: &[Picture], layout: &'static str) -> Tensor {
    let shape = [&[pictures.len() as i64][..], &pictures[0].bits.shape].concat();
    let whole = Elements::by_place("NHWC", &shape, |[n, c, h, w]| {
        pictures[n].bits.at([0, c, h, w])
    });
    upload(stream, &whole.in_layout(layout), pictures[0].dtype)
}

#[test]
fn tensors() {
    let stream = Stream::new();
    let mut random = Random::new(1000);
    for case in 0..250 {
        let images = random.pick(&[1, 1, 2, 3]);
        let layout = match images {
            1 => random.pick(&["NHWC", "HWC", "NCHW", "CHW"]),
            _ => random.pick(&["NHWC", "NCHW", "CNHW"]),
        };
        let extents = [
            1 + random.below(24),
            1 + random.below(24),
            1 + random.below(4),
        ];
        let dtype = random.pick(&DTYPES);
        let pictures: Vec<Picture> = (0..images)
            .map(|i| Picture::noise(dtype, extents, 10 * case + i as u64))
            .collect();
        let sizes = vec![(extents[0], extents[1]); images];
        let chain = Chain::random(&mut random, &sizes, extents[2]);
        let to = match images {
            1 => random.pick(&["NHWC", "HWC", "NCHW", "CHW"]),
            _ => random.pick(&["NHWC", "NCHW"]),
        };
        let src = tensor_of(&stream, &pictures, layout);
        // SAFETY: live handles, structs and places for results.
        check(
            &stream,
            &chain,
            &pictures,
            to,
            |dst, params| unsafe { cvc_op_preprocess(stream.0, src.0, dst, params) },
            |params, height, width, text, dst| unsafe {
                cvc_op_preprocess_new(stream.0, src.0, params, height, width, text, dst)
            },
        );
    }
}

/// An image of that format, which has the picture; its memory goes with the second.
pub fn image_of(stream: &Stream, picture: &Picture, format: u32, spread: bool) -> (Image, Vec<u8>) {
    let [height, width, channels] = [0, 1, 2].map(|i| picture.bits.shape[i] as i32);
    let bytes = to_bytes(&picture.bits.in_layout("CHW"), picture.dtype);
    if format == CVC_FORMAT_RGB8P && spread {
        // Planes that are not equally spaced.
        let plane = (width * height) as usize;
        let mut memory = vec![0u8; 4 * plane + 7];
        let starts = [plane + 3, 0, 3 * plane + 5];
        for (start, own) in starts.iter().zip(bytes.chunks(plane)) {
            memory[*start..start + plane].copy_from_slice(own);
        }
        let base = memory.as_mut_ptr();
        let planes = starts.map(|start| (base.wrapping_add(start), i64::from(width)));
        return (Image::around(format, width, height, &planes), memory);
    }
    let image = Image::new(format, width, height);
    let tensor = image.tensor();
    let layout: &'static str = match tensor.layout().as_str() {
        "NHWC" => "NHWC",
        "NCHW" => "NCHW",
        "HWC" => "HWC",
        other => {
            assert!(other == "CHW" || channels == 1, "{other}");
            "CHW"
        }
    };
    let bytes = to_bytes(&picture.bits.in_layout(layout), picture.dtype);
    tensor.put(stream, &bytes);
    stream.finish();
    (image, Vec::new())
}

#[test]
fn images_of_different_sizes() {
    let stream = Stream::new();
    let mut random = Random::new(9000);
    for case in 0..120 {
        let count = 1 + random.below(5);
        let channels = random.pick(&[3, 3, 4, 1]);
        let sizes: Vec<(usize, usize)> = (0..count)
            .map(|_| (1 + random.below(24), 1 + random.below(24)))
            .collect();
        let chain = Chain::random(&mut random, &sizes, channels);
        let formats: &[(u32, u32)] = match (channels, chain.makes_alike()) {
            (3, false) => &[
                (CVC_FORMAT_RGB8, CVC_DTYPE_U8),
                (CVC_FORMAT_RGB8P, CVC_DTYPE_U8),
            ],
            (3, true) => &[
                (CVC_FORMAT_RGB8, CVC_DTYPE_U8),
                (CVC_FORMAT_BGR8P, CVC_DTYPE_U8),
                (CVC_FORMAT_RGB8P, CVC_DTYPE_U8),
                (CVC_FORMAT_RGBF32, CVC_DTYPE_F32),
                (CVC_FORMAT_RGBF16P, CVC_DTYPE_F16),
            ],
            (4, false) => &[
                (CVC_FORMAT_RGBA8, CVC_DTYPE_U8),
                (CVC_FORMAT_BGRA8P, CVC_DTYPE_U8),
            ],
            (4, true) => &[
                (CVC_FORMAT_RGBA8, CVC_DTYPE_U8),
                (CVC_FORMAT_RGBAF32P, CVC_DTYPE_F32),
            ],
            (_, false) => &[(CVC_FORMAT_U16, CVC_DTYPE_U16)],
            (_, true) => &[
                (CVC_FORMAT_U8, CVC_DTYPE_U8),
                (CVC_FORMAT_F64, CVC_DTYPE_F64),
            ],
        };
        let mut pictures = Vec::new();
        let mut images = Vec::new();
        for (i, &(height, width)) in sizes.iter().enumerate() {
            let (format, dtype) = random.pick(formats);
            let picture = Picture::noise(dtype, [height, width, channels], 10 * case + i as u64);
            images.push(image_of(&stream, &picture, format, random.chance()));
            pictures.push(picture);
        }
        let handles: Vec<&Image> = images.iter().map(|(image, _)| image).collect();
        let batch = Batch::of(8, &handles);
        let to = match count {
            1 => random.pick(&["NHWC", "CHW"]),
            _ => random.pick(&["NHWC", "NCHW"]),
        };
        // SAFETY: live handles, structs and places for results.
        check(
            &stream,
            &chain,
            &pictures,
            to,
            |dst, params| unsafe { cvc_op_preprocess_var_shape(stream.0, batch.0, dst, params) },
            |params, height, width, text, dst| unsafe {
                cvc_op_preprocess_var_shape_new(stream.0, batch.0, params, height, width, text, dst)
            },
        );
        stream.finish();
        drop(batch);
    }
}

#[test]
fn alpha_is_premultiplied_for_the_resize_alone() {
    let stream = Stream::new();
    let picture = Picture::noise(CVC_DTYPE_U8, [17, 23, 4], 3);
    let src = upload(&stream, &picture.bits, picture.dtype);
    for (swap, filter) in [(true, CVC_FILTER_LANCZOS), (false, CVC_FILTER_BOX)] {
        let mut chain = Chain::random(&mut Random::new(1), &[(17, 23)], 4);
        (chain.height, chain.width) = (9, 12);
        (chain.convert, chain.normalize) = (None, None);
        (chain.swap, chain.filter) = (swap, filter);
        chain.resize_flags = CVC_RESIZE_PREMULTIPLY_ALPHA;
        // SAFETY: live handles, structs and places for results.
        check(
            &stream,
            &chain,
            std::slice::from_ref(&picture),
            "CHW",
            |dst, params| unsafe { cvc_op_preprocess(stream.0, src.0, dst, params) },
            |params, height, width, text, dst| unsafe {
                cvc_op_preprocess_new(stream.0, src.0, params, height, width, text, dst)
            },
        );
    }
}
