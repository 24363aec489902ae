//! The same kernels by LLVM: clang makes IR of the ground truth's sources, `opt` says which branches are uniform, `llc` makes
//! PTX of that IR, one conditional branch for each (switches are made branches before).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Branches of a kernel, and how many of them LLVM calls uniform.
pub(crate) type Counts = BTreeMap<String, (u32, u32)>;

fn run(program: &str, args: &[&str]) -> Option<(String, String)> {
    let out = Command::new(program).args(args).output().ok().filter(|o| o.status.success())?;
    Some((String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned()))
}

/// The name under which a tool is installed.
fn tool(names: &[&'static str]) -> Option<&'static str> {
    names.iter().copied().find(|n| run(n, &["--version"]).is_some())
}

/// LLVM's verdicts about a source, and the PTX it makes of it, written to `ptx`; `None` if LLVM is not there.
pub(crate) fn compile(source: &Path, header: &Path, folder: &Path, ptx: &Path) -> Option<Counts> {
    let clang = tool(&["clang-19", "clang-14", "clang"])?;
    let (opt, llc) = (tool(&["opt-19", "opt"])?, tool(&["llc-19", "llc"])?);
    let (plain, low) = (folder.join("k.bc"), folder.join("low.bc"));
    let path = |p: &Path| p.display().to_string();
    let mut args: Vec<String> =
        "-x cuda --cuda-device-only --cuda-gpu-arch=sm_80 -nocudainc -nocudalib -O2 -emit-llvm -c"
            .split(' ')
            .map(str::to_owned)
            .collect();
    args.extend(
        "-Xclang -target-feature -Xclang +ptx72 -ffp-contract=off -gline-tables-only".split(' ').map(str::to_owned),
    );
    args.extend(["-include".into(), path(header), path(source), "-o".into(), path(&plain)]);
    run(clang, &args.iter().map(String::as_str).collect::<Vec<_>>())?;
    run(opt, &["-passes=lower-switch", &path(&plain), "-o", &path(&low)])?;
    let (_, said) = run(opt, &["-passes=print<uniformity>", "-disable-output", &path(&low)])?;
    run(llc, &["-mcpu=sm_80", "-mattr=+ptx72", &path(&low), "-o", &path(ptx)])?;
    let mut counts = Counts::new();
    let mut name = String::new();
    for line in said.lines() {
        if let Some(rest) = line.strip_prefix("UniformityInfo for function '") {
            name = rest.trim_end_matches(":").trim_end_matches('\'').to_owned();
        }
        if line.contains("br i1 ") {
            let entry = counts.entry(name.clone()).or_default();
            entry.0 += 1;
            entry.1 += u32::from(!line.contains("DIVERGENT"));
        }
    }
    Some(counts)
}
