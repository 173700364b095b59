//! One place where operators launch their kernels.

use crate::backend::{self, ByteRange, Launch};
use crate::error::Result;
use crate::op::device_launch::BLOCK;
use crate::op::view::ParameterBlock;
use crate::timeline::Stream;

/// Queues a kernel whose work items are rows. No items need no launch.
pub fn rows<P: ParameterBlock>(
    stream: &'static Stream,
    params: &P,
    (items, items_per_task): (i64, i64),
    ranges: &[ByteRange],
) -> Result<()> {
    if items == 0 {
        return Ok(());
    }
    let device = params.device_launch();
    debug_assert!(
        crate::op::is_listed(device.kernel),
        "kernel {} is not in the list of those that are loaded",
        device.kernel.name
    );
    let launch = Launch {
        kernel: device.kernel,
        params: params.as_bytes(),
        items,
        items_per_task,
        grid: device.grid()?,
        block: BLOCK,
        shared_bytes: device.shared_bytes,
        ranges,
    };
    backend::current()?.launch(stream.device(), stream.handle(), &launch)
}
