//! All fuzz targets as one libFuzzer program. POSTROAD_FUZZ_TARGET names the target to run, POSTROAD_FUZZ_SEEDS
//! the folder to which its seeds are written first.

#![no_main]

use std::path::Path;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use postroad_fuzz::{Target, find_target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("POSTROAD_FUZZ_TARGET").unwrap_or_default();
    find_target(&name).unwrap_or_else(|| panic!("POSTROAD_FUZZ_TARGET={name:?} names no target"))
});

fn write_seeds() {
    let Some(folder) = std::env::var_os("POSTROAD_FUZZ_SEEDS") else { return };
    for (number, seed) in (TARGET.seeds)().into_iter().enumerate() {
        let file = Path::new(&folder).join(format!("seed-{number}"));
        std::fs::write(file, seed).expect("the folder of the seeds is writable");
    }
}

fuzz_target!(init: write_seeds(), |bytes: &[u8]| (TARGET.run)(bytes));
