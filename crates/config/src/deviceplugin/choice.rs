// SPDX-License-Identifier: Apache-2.0
//! Settings with a few valid words.

use crate::sink::Sink;
use crate::tree::Node;

/// A setting that is one of a few words.
pub trait Choice: Copy + 'static {
    /// All values with the word for each.
    const WORDS: &'static [(&'static str, Self)];

    /// The value of a word.
    fn from_word(word: &str) -> Option<Self> {
        let mut words = Self::WORDS.iter();
        words
            .find(|(known, _)| *known == word)
            .map(|(_, value)| *value)
    }

    /// The valid words: `one of none, single, mixed`.
    fn expected() -> String {
        let words: Vec<&str> = Self::WORDS.iter().map(|(word, _)| *word).collect();
        format!("one of {}", words.join(", "))
    }
}

/// Reads a choice.
pub fn choice<T: Choice>(sink: &mut Sink, node: &Node) -> Option<T> {
    let value = node.as_str().and_then(T::from_word);
    if value.is_none() {
        sink.wrong(node, &T::expected());
    }
    value
}

macro_rules! choices {
    ($($(#[doc = $doc:literal])+ $name:ident {
        $($(#[doc = $value_doc:literal])+ $(#[$default:ident])? $value:ident = $word:literal,)+
    })+) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[doc = $value_doc])+ $(#[$default])? $value,)+
        }

        impl $name {
            /// The word in the file.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$value => $word),+ }
            }
        }

        impl $crate::deviceplugin::choice::Choice for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$value)),+];
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )+};
}

choices! {
    /// How MIG slices are named to Kubernetes.
    MigStrategy {
        /// Slices are not advertised.
        #[default]
        None = "none",
        /// All slices of a node are alike and called `nvidia.com/gpu`.
        Single = "single",
        /// Each profile has its own resource, `nvidia.com/mig-1g.10gb`.
        Mixed = "mixed",
    }
    /// How devices are found.
    DiscoveryStrategy {
        /// Whatever works on the machine.
        #[default]
        Auto = "auto",
        /// Through the driver's library.
        Nvml = "nvml",
        /// Tegra systems.
        Tegra = "tegra",
    }
    /// How a container learns which devices it has.
    ListStrategy {
        /// `NVIDIA_VISIBLE_DEVICES`.
        #[default]
        Envvar = "envvar",
        /// Mounts below `/var/run/nvidia-container-devices`.
        VolumeMounts = "volume-mounts",
        /// CDI names in annotations.
        CdiAnnotations = "cdi-annotations",
        /// CDI names in the kubelet's CRI field.
        CdiCri = "cdi-cri",
    }
    /// What the ids in such a list are.
    IdStrategy {
        /// UUIDs.
        #[default]
        Uuid = "uuid",
        /// Indices.
        Index = "index",
    }
    /// Which GPU a shared replica is taken from.
    AllocationPolicy {
        /// The one with the fewest replicas in use.
        #[default]
        Distributed = "distributed",
        /// The one with the most.
        Packed = "packed",
    }
}
