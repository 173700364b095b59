//! Bytes become calls of the C interface, good and bad ones, with handles that live, are stale or never were, structs of
//! any size and content, and any numbers. No call may crash, panic, or fail without a message; after each run every
//! account is empty again.

#![no_main]

// The tests' declarations of the C functions.
#[path = "../../tests/c_interface/mod.rs"]
mod c_interface;
mod calls;
mod input;

use std::sync::Once;

use c_interface::*;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        std::env::set_var("CVC_HOST_MEMORY", "16M");
        start(CVC_INSTRUMENT_STEPPED);
    });
    let mut world = calls::World::new(default_cache());
    let mut input = input::Input::new(data);
    while !input.is_empty() {
        world.call(&mut input);
    }
    world.end();
});
