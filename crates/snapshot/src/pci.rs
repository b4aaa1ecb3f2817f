// SPDX-License-Identifier: Apache-2.0
//! PCI functions as Linux shows them in `/sys/bus/pci/devices`.

use std::fs;
use std::path::Path;

use publish::PciFunction;

/// Bytes of configuration space that hold capabilities (source: PCI specification).
const STANDARD: usize = 256;
/// Where the list of capabilities begins.
const FIRST_POINTER: usize = 0x34;
/// Id of the vendor-specific capability.
const VENDOR_SPECIFIC: u8 = 9;
/// NVIDIA's vendor id.
const NVIDIA: u16 = 0x10de;

/// All functions of NVIDIA's, and those at `addresses`, by rising address.
pub fn functions(sys: &Path, addresses: &[String]) -> Vec<PciFunction> {
    let folder = sys.join("bus/pci/devices");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<PciFunction> = names
        .filter_map(|name| function(&folder, name))
        .filter(|it| it.vendor == NVIDIA || addresses.contains(&it.address))
        .collect();
    found.sort_by(|one, other| one.address.cmp(&other.address));
    found
}

fn function(folder: &Path, address: String) -> Option<PciFunction> {
    let folder = folder.join(&address);
    let number = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        u32::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
    };
    let config = fs::read(folder.join("config")).unwrap_or_default();
    Some(PciFunction {
        vendor: u16::try_from(number("vendor")?).ok()?,
        class: number("class")?,
        config_bytes: config.len(),
        vendor_capability: vendor_capability(&config),
        address,
    })
}

/// The NUMA node of a function; `None` where Linux does not know it (-1).
pub fn numa_node(sys: &Path, address: &str) -> Option<u32> {
    let path = sys.join("bus/pci/devices").join(address).join("numa_node");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// An address as Linux writes it, from NVML's with eight digits of domain.
pub fn linux_address(nvml: &str) -> String {
    let lower = nvml.to_ascii_lowercase();
    match lower.split_once(':') {
        Some((domain, rest)) if domain.len() == 8 => format!("{}:{rest}", &domain[4..]),
        _ => lower,
    }
}

/// The vendor-specific capability in a configuration space, header included. A list that leads
/// outside or in a circle has none.
pub fn vendor_capability(config: &[u8]) -> Option<Vec<u8>> {
    let config = config.get(..STANDARD)?;
    let mut at = usize::from(*config.get(FIRST_POINTER)?);
    // Each capability takes at least four bytes, so there are no more than this many.
    for _ in 0..STANDARD / 4 {
        let id = *config.get(at)?;
        if at == 0 || id == 0xff {
            return None;
        }
        let next = usize::from(*config.get(at + 1)?);
        if id == VENDOR_SPECIFIC {
            let length = usize::from(*config.get(at + 2)?);
            return Some(config.get(at..at + length)?.to_vec());
        }
        at = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_found_and_bad_lists_have_none() {
        let mut config = vec![0; STANDARD];
        config[FIRST_POINTER] = 0x40;
        config[0x40..0x43].copy_from_slice(&[1, 0x50, 0]);
        config[0x50..0x58].copy_from_slice(&[9, 0, 8, 0x56, 0x46, 1, 2, 3]);
        let expected = vec![9, 0, 8, 0x56, 0x46, 1, 2, 3];
        assert_eq!(vendor_capability(&config), Some(expected));
        // In a circle, past the end, too short.
        config[0x41] = 0x40;
        assert_eq!(vendor_capability(&config), None);
        config[FIRST_POINTER] = 0xfc;
        config[0xfc..].copy_from_slice(&[9, 0, 8, 0]);
        assert_eq!(vendor_capability(&config), None);
        assert_eq!(vendor_capability(&config[..64]), None);
    }

    #[test]
    fn addresses_are_written_as_linux_does() {
        assert_eq!(linux_address("00000000:19:00.0"), "0000:19:00.0");
        assert_eq!(linux_address("00000001:AB:00.0"), "0001:ab:00.0");
        assert_eq!(linux_address("0000:19:00.0"), "0000:19:00.0");
    }
}
