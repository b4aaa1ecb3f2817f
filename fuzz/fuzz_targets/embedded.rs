// SPDX-License-Identifier: Apache-2.0
//! Any text as the value of a key in a ConfigMap, as a block: places lie within the manifest.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut manifest = String::from("kind: ConfigMap\ndata:\n  config.yaml: |\n");
    for line in text.lines() {
        manifest.push_str("    ");
        manifest.push_str(line);
        manifest.push('\n');
    }
    assert_eq!(config::laws::of_text(&manifest), Ok(()));
});
