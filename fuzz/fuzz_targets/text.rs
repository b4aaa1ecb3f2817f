// SPDX-License-Identifier: Apache-2.0
//! Any text as any configuration file: the laws of `config::laws` hold.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    assert_eq!(config::laws::of_text(text), Ok(()));
});
