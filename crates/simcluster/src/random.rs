// SPDX-License-Identifier: Apache-2.0
//! Names and uids that look random and are the same in each run: a seed goes in.

const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A seeded sequence (splitmix64, a public-domain generator by Sebastiano Vigna).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uid in the form of a version 4 UUID.
    pub fn uid(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff,
        )
    }

    /// The five letters that end a generated name, of those that Kubernetes uses.
    pub fn suffix(&mut self) -> String {
        let letter = |random: &mut Self| {
            let count = LETTERS.len() as u64;
            let at = usize::try_from(random.next() % count).unwrap_or_default();
            char::from(LETTERS[at])
        };
        (0..5).map(|_| letter(self)).collect()
    }
}
