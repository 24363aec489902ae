//! One program: created, compiled, read out, destroyed.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr;

use super::NvrtcError;
use super::table::{Code, Handle, Table};

/// Largest result that is read: no kernel's machine code comes near it.
const LARGEST: usize = 1 << 30;

pub(super) struct Program<'a> {
    table: &'a Table,
    handle: Handle,
}

fn zero_free(bytes: &[u8], what: &'static str) -> Result<CString, NvrtcError> {
    CString::new(bytes).map_err(|_| NvrtcError::Zero { what })
}

impl<'a> Program<'a> {
    pub(super) fn new(table: &'a Table, source: &[u8], name: &str) -> Result<Self, NvrtcError> {
        let source = zero_free(source, "the source")?;
        let name = zero_free(name.as_bytes(), "the file name")?;
        let mut handle: Handle = ptr::null_mut();
        // SAFETY: both strings are zero-terminated and live through the call, which copies them; with zero headers the
        // two lists are not read; `handle` is ours.
        let code = unsafe { (table.create)(&mut handle, source.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null()) };
        table.check("nvrtcCreateProgram", code)?;
        Ok(Program { table, handle })
    }

    pub(super) fn add_instance(&self, name: &str) -> Result<(), NvrtcError> {
        let name = zero_free(name.as_bytes(), "a kernel's name")?;
        // SAFETY: the handle is that of a live program; the string is zero-terminated and copied by the call.
        let code = unsafe { (self.table.add_name)(self.handle, name.as_ptr()) };
        self.table.check("nvrtcAddNameExpression", code)
    }

    /// Compiles. If the source is at fault, the error is the log.
    pub(super) fn compile(&self, options: &[String]) -> Result<(), NvrtcError> {
        let options: Vec<CString> =
            options.iter().map(|o| zero_free(o.as_bytes(), "an option")).collect::<Result<_, _>>()?;
        let list: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let count = c_int::try_from(list.len())
            .map_err(|_| NvrtcError::Call { call: "nvrtcCompileProgram", error: "too many options".into() })?;
        // SAFETY: the handle is live; `list` has `count` pointers to zero-terminated strings that outlive the call.
        let code = unsafe { (self.table.compile)(self.handle, count, list.as_ptr()) };
        self.table.check("nvrtcCompileProgram", code).map_err(|error| match self.log() {
            // Wrong options and internal errors leave a log too, when there is something to say.
            Ok(log) if !log.is_empty() => NvrtcError::Source { log },
            _ => error,
        })
    }

    pub(super) fn log(&self) -> Result<String, NvrtcError> {
        let bytes =
            self.read(("nvrtcGetProgramLogSize", self.table.log_size), ("nvrtcGetProgramLog", self.table.log))?;
        Ok(String::from_utf8_lossy(until_zero(&bytes)).trim_end().to_owned())
    }

    pub(super) fn cubin(&self) -> Result<Vec<u8>, NvrtcError> {
        self.read(("nvrtcGetCUBINSize", self.table.cubin_size), ("nvrtcGetCUBIN", self.table.cubin))
    }

    pub(super) fn ptx(&self) -> Result<Vec<u8>, NvrtcError> {
        let mut bytes = self.read(("nvrtcGetPTXSize", self.table.ptx_size), ("nvrtcGetPTX", self.table.ptx))?;
        bytes.truncate(until_zero(&bytes).len());
        Ok(bytes)
    }

    /// The mangled name of an instance that was added before compiling.
    pub(super) fn lowered(&self, name: &str) -> Result<String, NvrtcError> {
        let name = zero_free(name.as_bytes(), "a kernel's name")?;
        let mut text: *const c_char = ptr::null();
        // SAFETY: the handle is live, the name zero-terminated; `text` is ours to be set.
        let code = unsafe { (self.table.lowered)(self.handle, name.as_ptr(), &mut text) };
        self.table.check("nvrtcGetLoweredName", code)?;
        if text.is_null() {
            return Err(NvrtcError::Call { call: "nvrtcGetLoweredName", error: "no name".into() });
        }
        // SAFETY: not null; the library keeps the zero-terminated text until the program is destroyed; copied at once.
        Ok(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    fn read(
        &self,
        (size_name, size): (&'static str, unsafe extern "C" fn(Handle, *mut usize) -> Code),
        (fill_name, fill): (&'static str, unsafe extern "C" fn(Handle, *mut c_char) -> Code),
    ) -> Result<Vec<u8>, NvrtcError> {
        let mut len = 0usize;
        // SAFETY: the handle is live and the pointer is to our own integer.
        let code = unsafe { size(self.handle, &mut len) };
        self.table.check(size_name, code)?;
        if len > LARGEST {
            return Err(NvrtcError::Call { call: size_name, error: format!("{len} bytes") });
        }
        let mut bytes = vec![0u8; len];
        if len > 0 {
            // SAFETY: the buffer has the size that the library just named for this result.
            let code = unsafe { fill(self.handle, bytes.as_mut_ptr().cast()) };
            self.table.check(fill_name, code)?;
        }
        Ok(bytes)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle came from nvrtcCreateProgram, is destroyed once, and not used afterwards. An error would
        // mean that there is nothing to destroy.
        unsafe { (self.table.destroy)(&mut self.handle) };
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    &bytes[..end]
}
