//! Results by content: source, headers, options and compiler together name the file.
//!
//! A file is written whole or not at all, and carries a checksum: what was damaged is compiled again. A cache that cannot
//! be read or written is no error, only slower.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use super::Built;

const MAGIC: &[u8; 24] = b"lanescope compiled code1";
/// All files together may take so many bytes; the longest unused go first.
const LARGEST: u64 = 512 << 20;

/// Where results are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// `lanescope` in `XDG_CACHE_HOME`, or in `.cache` of the home folder.
    #[default]
    User,
    /// This folder.
    Folder(PathBuf),
    /// Nowhere.
    Off,
}

impl Cache {
    fn folder(&self) -> Option<PathBuf> {
        let var = |name| std::env::var_os(name).map(PathBuf::from).filter(|p: &PathBuf| p.is_absolute());
        match self {
            Cache::Off => None,
            Cache::Folder(path) => Some(path.clone()),
            Cache::User => {
                let base = var("XDG_CACHE_HOME").or_else(|| Some(var("HOME")?.join(".cache")))?;
                Some(base.join("lanescope"))
            }
        }
    }

    /// The result under a key.
    pub fn get(&self, key: &str) -> Option<Built> {
        let path = self.folder()?.join(key);
        let bytes = std::fs::read(&path).ok()?;
        let built = decode(&bytes)?;
        // Marks it as used. A read-only cache is still a cache.
        if let Ok(file) = std::fs::File::options().append(true).open(&path) {
            let _ = file.set_modified(SystemTime::now());
        }
        Some(built)
    }

    /// Keeps a result.
    pub fn put(&self, key: &str, built: &Built) {
        let Some(folder) = self.folder() else { return };
        if std::fs::create_dir_all(&folder).is_err() {
            return;
        }
        let Ok(mut file) = tempfile::NamedTempFile::new_in(&folder) else { return };
        if file.write_all(&encode(built)).and_then(|()| file.flush()).is_ok() {
            let _ = file.persist(folder.join(key));
            prune(&folder, LARGEST);
        }
    }
}

fn encode(built: &Built) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let lowered = built.lowered.as_deref().unwrap_or("");
    for part in [&built.cubin[..], &built.ptx, built.log.as_bytes(), lowered.as_bytes(), built.compiler.as_bytes()] {
        out.extend((part.len() as u64).to_le_bytes());
        out.extend(part);
    }
    let sum = Sha256::digest(&out);
    out.extend(sum);
    out
}

fn decode(bytes: &[u8]) -> Option<Built> {
    let (body, sum) = bytes.split_last_chunk::<32>()?;
    if Sha256::digest(body)[..] != sum[..] {
        return None;
    }
    let mut rest = body.strip_prefix(MAGIC)?;
    let mut part = || {
        let (len, after) = rest.split_first_chunk::<8>()?;
        let (part, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        rest = after;
        Some(part.to_vec())
    };
    let (cubin, ptx) = (part()?, part()?);
    let mut text = || String::from_utf8(part()?).ok();
    let (log, lowered, compiler) = (text()?, text()?, text()?);
    Some(Built { cubin, ptx, log, lowered: Some(lowered).filter(|l| !l.is_empty()), compiler })
}

fn prune(folder: &Path, limit: u64) {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|e| e.file_name().len() == 64)
        .filter_map(|e| {
            let meta = e.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some((meta.modified().ok()?, meta.len(), e.path()))
        })
        .collect();
    let mut total: u64 = files.iter().map(|f| f.1).sum();
    files.sort();
    for (_, size, path) in files {
        if total <= limit {
            break;
        }
        if std::fs::remove_file(path).is_ok() {
            total -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Built {
        Built {
            cubin: vec![1, 2, 3],
            ptx: b".version 8.8".to_vec(),
            log: "a warning".into(),
            lowered: Some("_Z1kIfEvv".into()),
            compiler: "NVRTC 12.9".into(),
        }
    }

    #[test]
    fn what_is_kept_comes_back_unless_it_was_damaged() {
        let dir = tempfile::tempdir().expect("a folder");
        let cache = Cache::Folder(dir.path().join("new"));
        assert_eq!(cache.get("k"), None);
        cache.put("k", &sample());
        assert_eq!(cache.get("k"), Some(sample()));
        let whole = encode(&sample());
        for end in 0..whole.len() {
            assert_eq!(decode(&whole[..end]), None, "cut at {end}");
        }
        for at in 0..whole.len() {
            let mut bad = whole.clone();
            bad[at] ^= 0x40;
            assert_eq!(decode(&bad), None, "changed at {at}");
        }
        Cache::Off.put("k", &sample());
        assert_eq!(Cache::Off.get("k"), None);
    }

    #[test]
    fn the_oldest_go_first() {
        let dir = tempfile::tempdir().expect("a folder");
        for (i, c) in ["a", "b", "c"].iter().enumerate() {
            let path = dir.path().join(c.repeat(64));
            std::fs::write(&path, [0; 100]).expect("written");
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1000 * (3 - i as u64));
            std::fs::File::options().append(true).open(&path).and_then(|f| f.set_modified(time)).expect("dated");
        }
        std::fs::write(dir.path().join("notes.txt"), [0; 1000]).expect("written");
        prune(dir.path(), 250);
        let left = |c: &str| dir.path().join(c.repeat(64)).exists();
        assert!(left("a") && left("b") && !left("c"));
        assert!(dir.path().join("notes.txt").exists(), "what is not ours stays");
    }
}
