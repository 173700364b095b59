//! The operators through the C interface, on the host backend: results against plain loops, order between streams, and
//! what is refused.

mod batches;
mod library;
mod models;
mod order;
mod preprocess;
mod preprocess_chains;
mod preprocess_nv12;
mod refusals;
mod tables;
mod tensors;
