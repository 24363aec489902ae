//! NVRTC's functions by name.

use std::ffi::{CStr, c_char, c_int};
use std::path::Path;

use libloading::Library;

use super::NvrtcError;

/// `nvrtcProgram`: a pointer to what only the library knows.
pub(super) type Handle = *mut std::ffi::c_void;
/// `nvrtcResult`: 0 is success.
pub(super) type Code = c_int;

type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> Code;
type ErrorString = unsafe extern "C" fn(Code) -> *const c_char;
type Numbers = unsafe extern "C" fn(*mut c_int) -> Code;
type Create = unsafe extern "C" fn(
    *mut Handle,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> Code;
type Destroy = unsafe extern "C" fn(*mut Handle) -> Code;
type Compile = unsafe extern "C" fn(Handle, c_int, *const *const c_char) -> Code;
type Size = unsafe extern "C" fn(Handle, *mut usize) -> Code;
type Fill = unsafe extern "C" fn(Handle, *mut c_char) -> Code;
type AddName = unsafe extern "C" fn(Handle, *const c_char) -> Code;
type Lowered = unsafe extern "C" fn(Handle, *const c_char, *mut *const c_char) -> Code;

/// The functions that are used. They are valid as long as the library is loaded, which is as long as this lives.
#[derive(Debug)]
pub(super) struct Table {
    version: Version,
    error_string: ErrorString,
    arch_count: Numbers,
    archs: Numbers,
    pub(super) create: Create,
    pub(super) destroy: Destroy,
    pub(super) compile: Compile,
    pub(super) log_size: Size,
    pub(super) log: Fill,
    pub(super) cubin_size: Size,
    pub(super) cubin: Fill,
    pub(super) ptx_size: Size,
    pub(super) ptx: Fill,
    pub(super) add_name: AddName,
    pub(super) lowered: Lowered,
    /// Last, so that it is dropped after the pointers into it.
    _library: Library,
}

/// Looks one function up.
///
/// # Safety
///
/// `T` must be the C signature of the function `name`.
unsafe fn function<T: Copy>(library: &Library, path: &Path, name: &'static str) -> Result<T, NvrtcError> {
    // SAFETY: the caller vouches for the signature; the pointer is copied out and kept beside the library.
    let symbol = unsafe { library.get::<T>(name.as_bytes()) };
    symbol.map(|s| *s).map_err(|_| NvrtcError::Missing { path: path.display().to_string(), name })
}

impl Table {
    pub(super) fn load(path: &Path) -> Result<Table, NvrtcError> {
        // SAFETY: opening a library runs its initialisers. Those of NVRTC set up its own state and nothing of ours;
        // the caller was told to name only files that are trusted as much as any program the user runs.
        let library = unsafe { Library::new(path) }.map_err(|e| {
            // The reason is in what it was caused by.
            let error = std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string);
            NvrtcError::Load { path: path.display().to_string(), error }
        })?;
        let l = &library;
        // SAFETY: the types above are the declarations of nvrtc.h, which have not changed since each function was
        // added (the last of them, nvrtcGetCUBIN and nvrtcGetSupportedArchs, with CUDA 11.1 and 11.2).
        let table = unsafe {
            Table {
                version: function(l, path, "nvrtcVersion")?,
                error_string: function(l, path, "nvrtcGetErrorString")?,
                arch_count: function(l, path, "nvrtcGetNumSupportedArchs")?,
                archs: function(l, path, "nvrtcGetSupportedArchs")?,
                create: function(l, path, "nvrtcCreateProgram")?,
                destroy: function(l, path, "nvrtcDestroyProgram")?,
                compile: function(l, path, "nvrtcCompileProgram")?,
                log_size: function(l, path, "nvrtcGetProgramLogSize")?,
                log: function(l, path, "nvrtcGetProgramLog")?,
                cubin_size: function(l, path, "nvrtcGetCUBINSize")?,
                cubin: function(l, path, "nvrtcGetCUBIN")?,
                ptx_size: function(l, path, "nvrtcGetPTXSize")?,
                ptx: function(l, path, "nvrtcGetPTX")?,
                add_name: function(l, path, "nvrtcAddNameExpression")?,
                lowered: function(l, path, "nvrtcGetLoweredName")?,
                _library: library,
            }
        };
        Ok(table)
    }

    /// The result of a call as a `Result`.
    pub(super) fn check(&self, call: &'static str, code: Code) -> Result<(), NvrtcError> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the function takes any number and returns a string constant of the library, or null.
        let text = unsafe { (self.error_string)(code) };
        let error = if text.is_null() {
            format!("error {code}")
        } else {
            // SAFETY: not null, zero-terminated and constant while the library is loaded; copied at once.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Err(NvrtcError::Call { call, error })
    }

    pub(super) fn version(&self) -> Result<(i32, i32), NvrtcError> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to our own integers, which the call writes.
        let code = unsafe { (self.version)(&mut major, &mut minor) };
        self.check("nvrtcVersion", code)?;
        Ok((major, minor))
    }

    pub(super) fn architectures(&self) -> Result<Vec<i32>, NvrtcError> {
        let mut count = 0;
        // SAFETY: the pointer is to our own integer.
        let code = unsafe { (self.arch_count)(&mut count) };
        self.check("nvrtcGetNumSupportedArchs", code)?;
        let mut list = vec![0; usize::try_from(count).unwrap_or(0).min(4096)];
        if list.len() != usize::try_from(count).unwrap_or(0) {
            return Err(NvrtcError::Call {
                call: "nvrtcGetNumSupportedArchs",
                error: format!("{count} architectures"),
            });
        }
        // SAFETY: the buffer has exactly the number of elements that the library says it writes.
        let code = unsafe { (self.archs)(list.as_mut_ptr()) };
        self.check("nvrtcGetSupportedArchs", code)?;
        list.sort_unstable();
        Ok(list)
    }
}
