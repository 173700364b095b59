//! What random programs consist of, for the tests that run them.

#![allow(dead_code)] // Each test uses a part of it.

pub mod batches;
#[path = "../c_interface/mod.rs"]
pub mod c_interface;
pub mod captures;
pub mod choice;
pub mod generate;
pub mod happens_before;
pub mod look;
pub mod model;
pub mod objects;
pub mod patterns;
pub mod print;
pub mod program;
pub mod raw;
pub mod run;
pub mod shrink;
pub mod slots;
pub mod streams;
pub mod suite;
pub mod threads;
pub mod wrapped;
pub mod wraps;
