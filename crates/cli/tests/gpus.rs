//! The table of GPUs, what users add to it, and occupancy for every architecture in it.

use std::path::Path;

use lanescope::analysis::roofline::{Limit, occupancy};
use lanescope::gpus::Gpus;
use lanescope::ir::{Kernel, LaunchShape};

fn built_in() -> Gpus {
    Gpus::built_in().unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_gpu_has_figures_that_can_be() {
    let gpus = built_in();
    assert!(gpus.all().count() >= 18);
    for g in gpus.all() {
        assert!((10..=200).contains(&g.sms), "{g:?}");
        assert!((1000.0..=3000.0).contains(&g.clock_mhz), "{g:?}");
        assert!((200.0..=8000.0).contains(&g.dram_gbs), "{g:?}");
        assert!((4 << 20..=128 << 20).contains(&g.l2_bytes), "{g:?}");
        assert_eq!(g.threads_per_sm, g.warps_per_sm * 32);
        assert!(g.shared_per_sm <= g.l1_bytes && g.shared_per_block <= g.shared_per_sm, "{g:?}");
        assert!(g.source.len() > 20, "{g:?}");
        // An SM that issues faster than its memory can feed it is a GPU; the other way round it is a slip.
        let issue = f64::from(g.sms * g.schedulers) * g.hz() * 128.0;
        assert!(issue > 5.0 * g.dram_gbs * 1e9, "{g:?}");
        assert_eq!(gpus.find(&g.name).unwrap().name, g.name);
    }
}

#[test]
fn names_are_found_as_people_write_them() {
    let gpus = built_in();
    for (name, found) in [
        ("h200", "H200"),
        ("NVIDIA H200", "H200"),
        ("rtx4090", "RTX 4090"),
        ("a100-80gb", "A100 80GB"),
        ("A100", "A100 40GB"),
        ("Tesla T4", "T4"),
        ("H100", "H100 SXM"),
    ] {
        assert_eq!(gpus.find(name).unwrap().name, found);
    }
    let error = gpus.find("RTX 4080").unwrap_err().to_string();
    assert!(error.starts_with("there is no GPU `RTX 4080`; did you mean `RTX 4090`?\n  known: V100, "), "{error}");
    assert!(error.ends_with("--gpus FILE.toml adds others"), "{error}");
    assert!(!gpus.find("abacus").unwrap_err().to_string().contains("did you mean"));
}

#[test]
fn code_without_a_gpu_gets_one_of_its_architecture() {
    let gpus = built_in();
    for (arch, name) in [
        ("sm_90", "H200"),
        ("sm_90a", "H200"),
        ("sm_80", "A100 80GB"),
        ("sm_86", "RTX 3090"),
        ("sm_89", "RTX 4090"),
        ("sm_72", "V100"),
        ("sm_75", "T4"),
        ("sm_100f", "B200"),
        ("sm_103", "B200"),
        ("sm_121", "RTX 5090"),
        ("ptx", "H200"),
        ("sm_110", "H200"),
    ] {
        assert_eq!(gpus.for_arch(arch).map(|g| g.name.as_str()), Some(name), "{arch}");
    }
}

const MINE: &str = r#"
[[arch]]
name = "sm_99"
default = "Mine"
schedulers = 2
warps_per_sm = 16
blocks_per_sm = 8
registers_per_sm = 32768
shared_per_sm = 65536
shared_per_block = 65536
shared_reserved = 0
shared_unit = 256
l1_bytes = 131072
lanes = { fma = 32, imad = 32, alu = 32, fp64 = 1, xu = 8, lsu = 16 }
source = "a drawing board"

[[gpu]]
name = "Mine"
arch = "sm_99"
sms = 3
clock_mhz = 100.5
dram_gbs = 1
l2_bytes = 1000000
source = "a drawing board"

[[gpu]]
name = "H200"
arch = "sm_90"
sms = 60
clock_mhz = 1200
dram_gbs = 2400
l2_bytes = 30000000
warps_per_sm = 32
source = "half an H200"
"#;

#[test]
fn users_add_and_replace() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("mine.toml");
    std::fs::write(&file, MINE).unwrap();
    let gpus = Gpus::with_file(&file).unwrap();
    let mine = gpus.find("mine").unwrap();
    assert_eq!((mine.sms, mine.schedulers, mine.warps_per_sm, mine.clock_mhz), (3, 2, 16, 100.5));
    assert_eq!(gpus.for_arch("sm_99").unwrap().name, "Mine");
    let half = gpus.for_arch("sm_90").unwrap();
    assert_eq!((half.sms, half.warps_per_sm, half.blocks_per_sm), (60, 32, 32));
    assert_eq!(gpus.all().filter(|g| g.name == "H200").count(), 1);
}

#[test]
fn faults_say_where_and_what() {
    let gpu = |body: &str| format!("[[gpu]]\nname = \"X\"\narch = \"sm_90\"\n{body}\n");
    let whole = "sms = 1\nclock_mhz = 1000\ndram_gbs = 1\nl2_bytes = 1\nsource = \"here\"";
    let cases: [(String, &str); 12] = [
        ("[[gpu]\n".into(), "t.toml:1:"),
        ("gpus = 1\n".into(), "t.toml:1:1: unknown key `gpus` in a table of GPUs; did you mean `gpu`?"),
        ("gpu = 1\n".into(), "t.toml:1:7: `gpu` must be a list of tables: write [[gpu]] before each"),
        ("[[gpu]]\n".into(), "t.toml:1:1: `name` is missing in a [[gpu]]"),
        (gpu(""), "t.toml:1:1: `source` is missing in the [[gpu]] `X`"),
        (gpu("source = \"here\""), "t.toml:1:1: `sms` is missing in the [[gpu]] `X`"),
        (gpu(&whole.replace("sms = 1", "sms = -1")), "t.toml:4:7: `sms` must be a number above 0, 65536 at most"),
        (gpu(&whole.replace("sms = 1", "sms = \"1\"")), "t.toml:4:7: `sms` must be a number above 0"),
        (gpu(&whole.replace("sms = 1", "sms = 0x10000000000")), "t.toml:4:7: `sms` must be a number above 0"),
        (gpu(&whole.replace("1000", "nan")), "t.toml:5:13: `clock_mhz` must be a number above 0"),
        (
            gpu(&format!("{whole}\nlanes = {{ fam = 1 }}")),
            "t.toml:9:11: unknown key `fam` in `lanes`; did you mean `fma`?",
        ),
        (gpu(whole).replace("sm_90", "sm_9"), "t.toml:3:8: architecture `sm_9` is not known; known are sm_100, "),
    ];
    for (text, wanted) in cases {
        let error = built_in().add("t.toml", &text).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}\n  wanted {wanted}");
    }
    let missing = Gpus::with_file(Path::new("no/such/file.toml")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read no/such/file.toml: "), "{missing}");
}

#[test]
fn any_text_is_read_or_refused() {
    arbtest::arbtest(|u| {
        let mut text = MINE.as_bytes().to_vec();
        for _ in 0..u.int_in_range(1..=8)? {
            let at = u.choose_index(text.len())?;
            match u.int_in_range(0..=2)? {
                0 => text[at] = u.arbitrary()?,
                1 => drop(text.remove(at)),
                _ => text.insert(at, *u.choose(b"0-.[]\"{}=e\n")?),
            }
        }
        let _ = built_in().add("t.toml", &String::from_utf8_lossy(&text));
        Ok(())
    });
}

fn check(table: &str) -> usize {
    let gpus = built_in();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/occupancy").join(table);
    let text = std::fs::read_to_string(path).unwrap();
    let mut rows = 0;
    for line in text.lines().skip(1) {
        let mut fields = line.split(',');
        let arch = fields.next().unwrap();
        let [registers, fixed, dynamic, block, blocks] =
            std::array::from_fn(|_| fields.next().unwrap().parse().unwrap());
        let gpu = gpus.for_arch(arch).unwrap();
        assert_eq!(gpu.arch, arch);
        // Machine code of sm_90 and later counts the system's part in its own.
        let counted = if arch == "sm_90" || arch.len() == 6 { 1024 } else { 0 };
        let kernel = Kernel { arch: arch.to_owned(), registers, shared_size: fixed + counted, ..Kernel::default() };
        let shape = LaunchShape { grid: [1 << 20, 1, 1], block: [block, 1, 1], warp_size: 32 };
        let o = occupancy(&kernel, &shape, dynamic, gpu);
        assert_eq!(o.blocks_per_sm, blocks, "{line}: {o:?}");
        assert_eq!(o.warps_per_sm, blocks * block.div_ceil(32));
        assert_eq!(blocks == 0, o.limit == Limit::DoesNotFit, "{line}: {o:?}");
        rows += 1;
    }
    rows
}

#[test]
fn occupancy_is_what_the_driver_of_an_h200_says() {
    assert_eq!(check("h200.csv"), 396);
}

#[test]
fn occupancy_is_what_the_calculator_says() {
    assert_eq!(check("calculator.csv"), 720);
}

#[test]
fn what_limits_occupancy_is_named() {
    let gpus = built_in();
    let gpu = gpus.find("H200").unwrap();
    let of = |registers: u32, shared: u32, block: u32, grid: u32| {
        let kernel = Kernel { arch: "sm_90".into(), registers, shared_size: 1024 + shared, ..Kernel::default() };
        let shape = LaunchShape { grid: [grid, 1, 1], block: [block, 1, 1], warp_size: 32 };
        let o = occupancy(&kernel, &shape, 0, gpu);
        (o.blocks_per_sm, o.warps_per_sm, o.limit)
    };
    assert_eq!(of(32, 0, 256, 10_000), (8, 64, Limit::Warps));
    assert_eq!(of(32, 0, 32, 10_000), (32, 32, Limit::Blocks));
    assert_eq!(of(255, 0, 256, 10_000), (1, 8, Limit::Registers));
    assert_eq!(of(32, 100_000, 256, 10_000), (2, 16, Limit::Shared));
    assert_eq!(of(32, 0, 256, 200), (2, 16, Limit::Grid));
    assert_eq!(of(128, 0, 1024, 200), (0, 0, Limit::DoesNotFit));
    // At the level of PTX nobody knows the registers.
    let ptx = Kernel { arch: "ptx".into(), ..Kernel::default() };
    let shape = LaunchShape { grid: [10_000, 1, 1], block: [256, 1, 1], warp_size: 32 };
    let o = occupancy(&ptx, &shape, 0, gpu);
    assert!(!o.registers_known && o.blocks_per_sm == 8);
}
