// SPDX-License-Identifier: Apache-2.0
//! Pointers of C callers, wrapped once so that what is behind them is ordinary code.

use std::ffi::CStr;

use gpu::sys::{c_char, c_int, c_uint, c_ulonglong};

use crate::code::{Answer, INSUFFICIENT_SIZE, INVALID_ARGUMENT};

/// Where a caller wants an answer, or what it gave as a handle. Null, or valid for the one call
/// for what `nvml.h` says: that is the promise made when it is wrapped.
#[derive(Debug)]
pub struct Out<T>(*mut T);

/// What a caller wants read: null, or valid for the one call.
#[derive(Debug)]
pub struct In<T>(*const T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Out<T> {}

/// How an argument of C reaches the code that serves it.
pub trait Argument {
    /// What it becomes.
    type Wrapped;

    /// Wraps it.
    ///
    /// # Safety
    /// A pointer must be null, a handle, or valid during the call for what `nvml.h` says.
    unsafe fn wrap(self) -> Self::Wrapped;
}

impl<T> Argument for *mut T {
    type Wrapped = Out<T>;

    unsafe fn wrap(self) -> Out<T> {
        Out(self)
    }
}

impl<T> Argument for *const T {
    type Wrapped = In<T>;

    unsafe fn wrap(self) -> In<T> {
        In(self)
    }
}

macro_rules! plain {
    ($($kind:ty),*) => {
        $(
            impl Argument for $kind {
                type Wrapped = Self;

                unsafe fn wrap(self) -> Self {
                    self
                }
            }
        )*
    };
}
plain!(c_int, c_uint, c_ulonglong);

impl<T> Out<T> {
    /// The address: of a handle, its value.
    pub fn address(self) -> usize {
        self.0.addr()
    }

    /// Whether the caller gave none.
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The same place, read or written as another version of the struct, which the version field
    /// must have told.
    pub fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// Writes the answer.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for null.
    pub fn put(self, value: T) -> Answer<()> {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not null, so valid for a write of a `T` by the promise of `wrap`. Callers may
        // pack their structs, so alignment is not relied on.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Reads what the caller put there.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for null.
    pub fn get(self) -> Answer<T>
    where
        T: Copy,
    {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not null, so valid for a read of a `T` by the promise of `wrap`; the types that
        // are read are plain C integers and structs of them.
        Ok(unsafe { self.0.read_unaligned() })
    }

    /// The element at that place of an array, which the caller must have made long enough.
    pub fn at(self, index: usize) -> Self {
        Self(self.0.wrapping_add(index))
    }

    /// Writes an array that the caller has made long enough for all there can be.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for null.
    pub fn put_all(self, values: impl IntoIterator<Item = T>) -> Answer<()> {
        if self.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        let mut values = values.into_iter().enumerate();
        values.try_for_each(|(index, value)| self.at(index).put(value))
    }
}

impl Out<c_char> {
    /// Writes text with its end mark.
    ///
    /// # Errors
    /// `INSUFFICIENT_SIZE` if `length` bytes do not hold it, `INVALID_ARGUMENT` for null.
    pub fn put_text(self, length: c_uint, text: &str) -> Answer<()> {
        if !self.is_null() && text.len() >= length as usize {
            return Err(INSUFFICIENT_SIZE);
        }
        self.put_all(text.bytes().chain([0]).map(|byte| byte as c_char))
    }
}

impl<T: Copy> In<T> {
    /// Reads what the caller gave.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for null.
    pub fn get(self) -> Answer<T> {
        Out(self.0.cast_mut()).get()
    }
}

impl In<c_char> {
    /// The text that the caller gave.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for null or what is not UTF-8.
    pub fn text(&self) -> Answer<&str> {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not null, so the start of a text with an end mark by the promise of `wrap`.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| INVALID_ARGUMENT)
    }
}

/// Text in an array of a struct; cut if it is too long.
pub fn text_array<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    let room = array.iter_mut().take(N.saturating_sub(1));
    room.zip(text.bytes())
        .for_each(|(place, byte)| *place = byte as c_char);
    array
}
