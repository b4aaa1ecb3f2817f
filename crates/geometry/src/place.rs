// SPDX-License-Identifier: Apache-2.0
//! Exact placement: which of the present instances stay, and where the wanted ones go.

mod exact;
mod inside;
mod largest;
mod need;
mod search;

use std::collections::BTreeMap;

use units::{Placement, ProfileName};

use crate::board::Board;
use crate::inventory::{ComputeInstance, GpuInstance};
use crate::layout::{ComputeSpec, InstanceSpec, Layout};

/// A GPU instance that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Present {
    /// What and where it is.
    pub spec: InstanceSpec,
    /// Whether something uses each of `spec.compute`, in the same order; what is missing is idle.
    pub busy: Vec<bool>,
}

impl From<&GpuInstance> for Present {
    fn from(instance: &GpuInstance) -> Self {
        let in_use = |compute: &ComputeInstance| !compute.holders.is_empty();
        let order = instance.compute_in_order();
        Self {
            spec: instance.spec(),
            busy: order.into_iter().map(in_use).collect(),
        }
    }
}

/// What is wanted on a GPU whose MIG mode is on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// So many slices of each profile, wherever they fit. Counts of 0 are as if absent.
    Slices(BTreeMap<ProfileName, u32>),
    /// Exactly this placed layout, as recorded earlier.
    Exact(Layout),
}

/// A GPU instance that stays, and what changes inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Index into the present instances.
    pub present: usize,
    /// Compute instances that go, as indices into the present one's `compute`.
    pub destroy_compute: Vec<usize>,
    /// Compute instances that come.
    pub create_compute: Vec<ComputeSpec>,
}

/// The answer of [`place`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// What stays, by rising start.
    pub keep: Vec<Kept>,
    /// What goes: indices into the present instances, by rising start.
    pub destroy: Vec<usize>,
    /// What comes, by rising start.
    pub create: Vec<InstanceSpec>,
}

/// Why nothing can be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The board's placements are unknown.
    #[error("the placements of {board} are not known: {reason}")]
    BoardUnknown {
        /// The board's key.
        board: String,
        /// Why.
        reason: String,
    },
    /// The board does not offer a profile.
    #[error("{board} does not offer {profile}")]
    NotOffered {
        /// The board's key.
        board: String,
        /// The profile.
        profile: ProfileName,
        /// The offered profile that is most like it: same slices and attributes if there is one,
        /// else same slices, else closest memory.
        nearest: Option<Box<ProfileName>>,
        /// All that are offered (GPU instance profiles).
        offered: Vec<ProfileName>,
    },
    /// A recorded layout has an instance that cannot be where it says.
    #[error("{profile} cannot be at {placement} of {board}: {reason}")]
    Illegal {
        /// The board's key.
        board: String,
        /// The profile of the GPU instance or compute instance.
        profile: ProfileName,
        /// Where it should be; of a compute instance, within its GPU instance.
        placement: Placement,
        /// Why not.
        reason: &'static str,
    },
    /// No placement exists: proven by exhaustive search.
    #[error("no placement of the wanted slices exists on {board}")]
    DoesNotFit {
        /// The board's key.
        board: String,
        /// The largest layouts that do fit and are part of what was wanted, most slices first.
        largest: Vec<BTreeMap<ProfileName, u32>>,
    },
}

/// Chooses placements for `wanted`. Exact: every placement is looked at. The order of the input
/// never matters.
///
/// Better is, in this order: more slices (compute instances) in use stay; more slices stay; fewer
/// GPU instances are created; fewer there are at all; what is left blocks fewer profiles, then
/// fewer places; lower starts. Partial compute instances of one profile share GPU instances as
/// these rules demand: new ones fill one GPU instance before the next, and those that run are left
/// where they are.
///
/// A recorded layout ([`Wanted::Exact`]) leaves nothing to choose: what is at its place stays, the
/// rest is created there.
///
/// # Errors
/// [`PlaceError`] says what is not possible and what would be.
pub fn place(board: &Board, present: &[Present], wanted: &Wanted) -> Result<Placed, PlaceError> {
    match wanted {
        Wanted::Exact(layout) => exact::place(board, present, layout),
        Wanted::Slices(slices) => {
            let needs = need::resolve(board, slices)?;
            search::best(board, present, &needs).ok_or_else(|| PlaceError::DoesNotFit {
                board: board.key.clone(),
                largest: largest::layouts(board, &needs),
            })
        }
    }
}

impl Placed {
    /// Sorted by rising start, with everything that is not kept destroyed.
    fn in_order(mut self, present: &[Present]) -> Self {
        let place = |at: usize| (present[at].spec.placement, present[at].spec.driver_id);
        self.keep.sort_by_key(|kept| place(kept.present));
        self.create.sort();
        let kept = |at: &usize| self.keep.iter().any(|kept| kept.present == *at);
        self.destroy = (0..present.len()).filter(|at| !kept(at)).collect();
        self.destroy.sort_by_key(|at| place(*at));
        self
    }
}
