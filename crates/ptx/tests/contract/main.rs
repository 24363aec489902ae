//! Which products and sums become fused operations: as many as in ptxas's machine code.
//!
//! `forms.txt` has one form a line, `NAME | COUNT | STATEMENTS`, put into the kernel of `kernel.ptx`. The count is that
//! of the fused operations that ptxas 12.9 and 13 make for sm_90. With `--ignored`, both are asked again
//! (`.ci/oracles.sh` fetches them into `oracles/`, or `$LANESCOPE_ORACLES`). `$O` stores `d`, `$O2` also `d2`, and
//! `$OH`, `$OS`, `$OD` the results of other types.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use lanescope_ir::Op;
use lanescope_ir::op::LaneFn;
use lanescope_ir::op::double::DoubleFn;
use lanescope_ir::op::float::FloatFn;
use lanescope_ir::op::half::HalfFn;
use lanescope_ptx::lower;
use libtest_mimic::{Arguments, Failed, Trial};

struct Form {
    name: String,
    fused: usize,
    text: String,
}

fn forms() -> Vec<Form> {
    let stores = [
        ("$O2", "st.volatile.global.f32 [out], d; st.volatile.global.f32 [out+4], d2;"),
        ("$OH", "st.volatile.global.b32 [out], hd;"),
        ("$OS", "st.volatile.global.b16 [out], sd;"),
        ("$OD", "st.volatile.global.f64 [out], dd;"),
        ("$O", "st.volatile.global.f32 [out], d;"),
        ("$S", "st.volatile.global.f32 [out+8], m;"),
    ];
    let mut forms = Vec::new();
    for line in include_str!("forms.txt").lines() {
        let mut parts = line.splitn(3, " | ");
        let (Some(name), Some(fused), Some(body)) = (parts.next(), parts.next(), parts.next()) else {
            panic!("a form without three parts: {line}");
        };
        let body = stores.iter().fold(body.to_owned(), |body, (short, long)| body.replace(short, long));
        let text = include_str!("kernel.ptx").replace("// STATEMENTS", &body);
        forms.push(Form { name: name.to_owned(), fused: fused.parse().expect("a count"), text });
    }
    forms
}

/// Fused operations here.
fn ours(text: &str, contract: bool) -> Result<usize, Failed> {
    let parsed = lanescope_ptx::parse(text);
    let options = lower::Options { contract, ..lower::Options::default() };
    let kernel = lower::load(&parsed, "k", options)
        .map_err(|errors| errors.iter().map(|e| e.message.clone()).collect::<Vec<_>>().join("\n"))?;
    let is_fused = |op: &Op| match op {
        Op::Lane(op) => matches!(
            op.f,
            LaneFn::Float(FloatFn::Fma { .. }) | LaneFn::Double(DoubleFn::Fma(..)) | LaneFn::Half(HalfFn::Fma(_))
        ),
        _ => false,
    };
    Ok(kernel.instructions.iter().filter(|i| is_fused(&i.op)).count())
}

/// Fused operations of ptxas in each form: all forms are one text, as kernels `k0`, `k1` and so on. A product alone of
/// f16 is an `HFMA2` that adds `-RZ`, a sum alone one that multiplies by 1.
fn theirs(bin: &Path, tool: &str, forms: &[Form]) -> Result<Vec<usize>, Failed> {
    let mut text = String::new();
    for (at, form) in forms.iter().enumerate() {
        let (head, kernel) = form.text.split_once(".visible .entry k(").ok_or("no kernel")?;
        if at == 0 {
            text.push_str(head);
        }
        write!(text, ".visible .entry k{at}({kernel}")?;
    }
    let base = std::env::temp_dir().join(format!("lanescope-contract-{}-{tool}", std::process::id()));
    let (source, cubin) = (base.with_extension("ptx"), base.with_extension("cubin"));
    std::fs::write(&source, text)?;
    let done = Command::new(bin.join(tool)).args(["-arch", "sm_90"]).arg(&source).arg("-o").arg(&cubin).output()?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned().into());
    }
    let listing = Command::new(bin.join("nvdisasm")).arg("-c").arg(&cubin).output()?;
    std::fs::remove_file(&source)?;
    std::fs::remove_file(&cubin)?;
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    let fused = |line: &&str| {
        ["FFMA", "DFMA"].iter().any(|op| line.contains(op))
            || line.contains("HFMA2") && !line.contains("RZ") && !line.contains("1, 1,")
    };
    let mut counts = vec![0; forms.len()];
    for section in listing.split("\n.text.k").skip(1) {
        let (number, code) = section.split_once(':').ok_or("a section without a name")?;
        let code = code.split("\n.text.").next().unwrap_or_default();
        let count = counts.get_mut(number.parse::<usize>()?).ok_or("a kernel too many")?;
        *count = code.lines().filter(fused).count();
    }
    Ok(counts)
}

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for form in forms() {
        let (text, fused) = (form.text, form.fused);
        trials.push(Trial::test(form.name, move || {
            let found = ours(&text, true)?;
            if found != fused {
                return Err(format!("{found} are fused, by ptxas {fused}").into());
            }
            let written = text.matches("fma.rn").count();
            let found = ours(&text, false)?;
            if found == written { Ok(()) } else { Err(format!("{found} are fused without contraction").into()) }
        }));
    }
    let bin = std::env::var_os("LANESCOPE_ORACLES").map(PathBuf::from);
    let bin = bin.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracles")).join("bin");
    for tool in ["ptxas-12.9", "ptxas-13"] {
        let bin = bin.clone();
        let ask = move || {
            let (forms, mut wrong) = (forms(), String::new());
            for (form, found) in forms.iter().zip(theirs(&bin, tool, &forms)?) {
                if found != form.fused {
                    writeln!(wrong, "{}: {found}, not {}", form.name, form.fused)?;
                }
            }
            if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
        };
        trials.push(Trial::test(tool, ask).with_ignored_flag(true));
    }
    libtest_mimic::run(&arguments, trials).exit();
}
