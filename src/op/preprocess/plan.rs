//! What a call comes to: every value checked, every view and kind known. Who carries it out decides nothing more.

use super::input::{Input, Pixels, Source};
use super::Preprocessing;
use crate::error::{Error, Result, Status};
use crate::fail;
use crate::object::Dtype;
use crate::op::convert_to::{self, Conversion};
use crate::op::normalize::{self, Factors, Normalization};
use crate::op::normalize_params::NormalizeValues;
use crate::op::nv12_params::ColorMatrix;
use crate::op::operand::Operand;
use crate::op::pillow_resize::Resampling;
use crate::op::preprocess_params::{is_fused, Finish};
use crate::op::resize_params::Size;
use crate::op::resize_table::{ResizeFilter, MAX_SIZE};
use crate::op::view::{Extents, View};

/// Where the result goes.
#[derive(Clone, Copy)]
pub struct Target {
    pub view: View,
    /// One channel's.
    pub dtype: Dtype,
    /// Height and width are what is resized to.
    pub extents: Extents,
}

/// Which axes are reversed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flip {
    pub rows: bool,
    pub columns: bool,
}

impl Flip {
    /// As in flip: 0 reverses the rows, more the columns, less both.
    fn of(code: Option<i32>) -> Flip {
        code.map_or(Flip::default(), |code| Flip {
            rows: code <= 0,
            columns: code != 0,
        })
    }

    pub fn of_view(self, view: View, extents: &Extents) -> View {
        view.flipped(self.rows, self.columns, extents)
    }
}

/// A convert_to step.
pub struct Converting<'a> {
    pub dtype: Dtype,
    pub conversion: &'a Conversion,
}

/// A normalize step.
pub struct Normalizing<'a> {
    factors: Factors<'a>,
    normalization: &'a Normalization,
}

impl Normalizing<'_> {
    /// Base, scale and the other values for images and channels of the result from those on. Base and scale belong to
    /// places and channels of the result, after flip and swap.
    pub fn values(
        &self,
        image: i64,
        channel: i64,
        (from, to): (Dtype, Dtype),
    ) -> Result<NormalizeValues> {
        let first = (image, channel);
        self.factors
            .values_from(first, self.normalization, from.kind(), to.kind())
    }
}

/// All of a call, the steps in the order of the fields.
pub struct Plan<'a> {
    /// Of the images in order, cropped; each is resized where its size is not that of `target`.
    pub sources: &'a [Source],
    /// Of sources that are NV12.
    pub matrix: ColorMatrix,
    pub resampling: Resampling,
    pub flip: Flip,
    /// Channels 0 and 2 are exchanged; there are 3 or 4.
    pub swap_channels: bool,
    pub conversion: Option<Converting<'a>>,
    pub normalization: Option<Normalizing<'a>>,
    pub target: Target,
}

impl<'a> Plan<'a> {
    /// Checks all but that memory does not overlap.
    pub fn new(input: &'a Input, target: Target, request: &'a Preprocessing) -> Result<Plan<'a>> {
        for (label, extent, expected) in [
            ("N", target.extents.images, input.images),
            ("C", target.extents.channels, input.channels),
        ] {
            // Without images nothing says how many channels there are.
            if extent != expected && (label == "N" || input.images > 0) {
                fail!(
                    Status::ShapeMismatch,
                    "dst has {extent} for {label}, expected {expected}, as {}",
                    if request.nv12.is_some() && label == "C" {
                        "RGB of NV12 has"
                    } else {
                        "src"
                    }
                );
            }
        }
        if request.swap_channels && input.images > 0 && input.channels < 3 {
            fail!(
                Status::NotSupported,
                "params.flags has CVC_PREPROCESS_SWAP_CHANNELS and src has {} channels, expected 3 or 4",
                input.channels
            );
        }
        let conversion = match &request.conversion {
            Some((dtype, conversion)) => {
                in_params(conversion.check())?;
                check_one_lane(*dtype, "params.convert_dtype")?;
                convert_to::check_dtype(*dtype, "params.convert_dtype")?;
                Some(Converting {
                    dtype: *dtype,
                    conversion,
                })
            }
            None => None,
        };
        let normalization = match &request.normalization {
            Some(normalization) => {
                let factors = in_normalize(normalization.check(input.src))?;
                in_normalize(factors.check_extents(&target.extents, || "dst".to_string()))?;
                Some(Normalizing {
                    factors,
                    normalization,
                })
            }
            None => None,
        };
        let plan = Plan {
            sources: &input.sources,
            matrix: request.matrix,
            resampling: request.resampling,
            flip: Flip::of(request.flip_code),
            swap_channels: request.swap_channels,
            conversion,
            normalization,
            target,
        };
        plan.check_dtypes()?;
        if !plan.is_empty() {
            for source in plan.sources {
                plan.check_resize(source)?;
            }
        }
        Ok(plan)
    }

    /// Nothing is to be done.
    pub fn is_empty(&self) -> bool {
        self.target.extents.is_empty()
    }

    pub fn is_resized(&self, source: &Source) -> bool {
        let extents = &self.target.extents;
        (source.width, source.height) != (extents.width, extents.height)
    }

    /// Some step reckons with the elements of the result.
    pub fn computes(&self) -> bool {
        self.conversion.is_some() || self.normalization.is_some()
    }

    /// The sizes of a source that is resized, and of what it becomes.
    pub fn sizes(&self, source: &Source) -> (Size, Size) {
        let size = |width: i64, height: i64| Size {
            width: width as i32,
            height: height as i32,
        };
        let Extents { width, height, .. } = self.target.extents;
        (size(source.width, source.height), size(width, height))
    }

    /// Tensors that are read besides the sources.
    pub fn factors(&self) -> impl Iterator<Item = &Operand<'a>> {
        self.normalization
            .iter()
            .flat_map(|normalizing| normalizing.factors.tensors())
    }

    /// What becomes of a sample of U8 after the resize; `None` where the fused kernel does not do it.
    pub fn finish(&self) -> Result<Option<Finish>> {
        let same_for_all = |tensor: &Operand| {
            let own = &tensor.extents;
            (own.images, own.height, own.width) == (1, 1, 1)
        };
        let converted = self
            .conversion
            .as_ref()
            .map_or(Dtype::U8, |converting| converting.dtype);
        if self.resampling.filter == ResizeFilter::Nearest
            || self.resampling.premultiply_alpha
            || ![converted, self.target.dtype]
                .iter()
                .all(|dtype| is_fused(dtype.kind()))
            || !self.factors().all(same_for_all)
        {
            return Ok(None);
        }
        let conversion = self.conversion.as_ref().map(|converting| {
            let Conversion {
                alpha,
                beta,
                rounding,
            } = *converting.conversion;
            (converted.kind(), (alpha, beta), rounding)
        });
        let normalize = match &self.normalization {
            Some(normalizing) => Some(normalizing.values(0, 0, (converted, self.target.dtype))?),
            None => None,
        };
        let dst = self.target.dtype.kind();
        Ok(Some(Finish::new(
            conversion,
            normalize,
            self.swap_channels,
            dst,
        )))
    }

    fn check_dtypes(&self) -> Result<()> {
        if self.normalization.is_some() {
            normalize::check_dtype(self.target.dtype, "dst's dtype")?;
            if let Some(converting) = &self.conversion {
                let name = "params.convert_dtype, before normalize,";
                normalize::check_dtype(converting.dtype, name)?;
            }
        } else if let Some(converting) = &self.conversion {
            self.check_last(converting.dtype, || "params.convert_dtype".to_string())?;
        }
        for source in self.sources {
            if self.conversion.is_some() {
                convert_to::check_dtype(source.dtype, &format!("{}'s dtype", source.name()))?;
            } else if self.normalization.is_some() {
                normalize::check_dtype(source.dtype, &format!("{}'s dtype", source.name()))?;
            } else {
                self.check_last(source.dtype, || source.name())?;
            }
        }
        Ok(())
    }

    fn check_last(&self, dtype: Dtype, whose: impl Fn() -> String) -> Result<()> {
        let own = self.target.dtype;
        if own != dtype {
            fail!(
                Status::DtypeMismatch,
                "dst has dtype {own}, expected {dtype}, as {}",
                whose()
            );
        }
        Ok(())
    }

    fn check_resize(&self, source: &Source) -> Result<()> {
        if !self.is_resized(source) {
            return Ok(());
        }
        let Extents { width, height, .. } = self.target.extents;
        for (name, label, extent) in [
            (source.name(), "W", source.width),
            (source.name(), "H", source.height),
            ("dst".to_string(), "W", width),
            ("dst".to_string(), "H", height),
        ] {
            if !(1..=i64::from(MAX_SIZE)).contains(&extent) {
                fail!(
                    Status::InvalidShape,
                    "{name} has {extent} for {label}, expected 1 to {MAX_SIZE} where it is resized"
                );
            }
        }
        if source.images > i64::from(i32::MAX) {
            fail!(
                Status::InvalidShape,
                "{} has {} for N, expected at most {}",
                source.name(),
                source.images,
                i32::MAX
            );
        }
        let channels = self.target.extents.channels;
        let kind = source.dtype.kind();
        in_params(self.resampling.check(kind, channels, || source.name()))?;
        let is_split = matches!(&source.pixels, Pixels::Parts(parts) if parts.len() > 1);
        if self.resampling.premultiply_alpha && is_split {
            fail!(
                Status::NotSupported,
                "params.resize_flags has CVC_RESIZE_PREMULTIPLY_ALPHA, and the planes of {} are not equally spaced",
                source.name()
            );
        }
        Ok(())
    }
}

/// What is an argument of a step's own operator is a field here.
pub fn in_params<T>(result: Result<T>) -> Result<T> {
    const ARGUMENTS: [&str; 4] = ["alpha ", "beta ", "round ", "filter "];
    result.map_err(|error| {
        let is_argument = |name: &&str| error.message.starts_with(*name);
        let message = match ARGUMENTS.iter().any(is_argument) {
            true => format!("params.{}", error.message),
            false => error
                .message
                .replace("flags has CVC_RESIZE", "params.resize_flags has CVC_RESIZE"),
        };
        Error { message, ..error }
    })
}

/// Fields of the parameters of normalize are named as they lie in those of preprocess.
pub fn in_normalize<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| Error {
        message: error.message.replace("params.", "params.normalize."),
        ..error
    })
}

pub fn check_one_lane(dtype: Dtype, name: &str) -> Result<()> {
    if dtype.lanes() > 1 {
        fail!(
            Status::NotSupported,
            "{name} is {dtype}, expected a dtype of one lane"
        );
    }
    Ok(())
}
