//! One place where operators launch their kernels.

use crate::backend::{self, ByteRange, Kernel, Launch};
use crate::error::Result;
use crate::op::view::{row_grid, ParameterBlock, ROW_BLOCK};
use crate::timeline::Stream;

/// Queues a kernel whose work items are rows. No items need no launch.
pub fn rows<P: ParameterBlock>(
    stream: &'static Stream,
    kernel: &'static Kernel,
    params: &P,
    (items, items_per_task): (i64, i64),
    ranges: &[ByteRange],
) -> Result<()> {
    if items == 0 {
        return Ok(());
    }
    let launch = Launch {
        kernel,
        params: params.as_bytes(),
        items,
        items_per_task,
        grid: row_grid(items),
        block: ROW_BLOCK,
        shared_bytes: 0,
        ranges,
    };
    backend::current()?.launch(stream.device(), stream.handle(), &launch)
}
