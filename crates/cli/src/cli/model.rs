//! `lanescope model`: the closed forms.

use lanescope::analysis::model::{self, Answer, Arm, Sort};

use super::{Format, print, print_json};

/// Flags of `model`.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    question: Question,
    /// Lanes of a warp: 32, or 64 for wavefronts.
    #[arg(long, global = true, default_value_t = 32, value_parser = width)]
    width: u32,
    /// How to print.
    #[arg(long, global = true, value_enum, default_value_t)]
    format: Format,
}

#[derive(clap::Subcommand)]
enum Question {
    /// Paths that one warp takes one after the other: `paths 100@1 5@31`, `paths 20 30 25 5`.
    Paths {
        /// Length in instructions, and the lanes that take the path (left out: shared evenly).
        #[arg(required = true, value_name = "LENGTH[@LANES]", value_parser = path)]
        paths: Vec<(u32, Option<u32>)>,
    },
    /// An N-way branch of equally long arms; 32 ways are the worst that a branch can do.
    Ways {
        /// Arms.
        ways: u32,
        /// Instructions of each arm.
        #[arg(long, default_value_t = 1)]
        length: u32,
    },
    /// A loop that lanes leave at different trips: `loop 20@1 4@31 --body 12`.
    Loop {
        /// Trips, and how many lanes make so many (left out: one).
        #[arg(required = true, value_name = "TRIPS[@LANES]", value_parser = path)]
        trips: Vec<(u32, Option<u32>)>,
        /// Instructions of the body.
        #[arg(long, default_value_t = 1)]
        body: u32,
    },
    /// Nested conditions: `nested '10 (1/2: 20 (1/4: 40 | 20) | 60)'`.
    ///
    /// Numbers are instructions in a row; a branch in parentheses has the share of lanes (a probability, or a
    /// number of lanes) before each arm's colon; `[4: 3]` is a loop of 4 turns.
    Nested {
        /// The expression.
        expression: String,
    },
    /// An if: predicated against branched.
    Predicate {
        /// Instructions of the first arm.
        first: u32,
        /// Instructions of the second arm.
        second: u32,
        /// Lanes that take the first arm (default: half).
        #[arg(long)]
        lanes: Option<u32>,
        /// Instructions of the branch itself, as BSSY, BRA and BSYNC.
        #[arg(long, default_value_t = 3)]
        overhead: u32,
    },
    /// A long path that a lane takes with a small probability: scattered over warps against packed.
    Rare {
        /// Probability for a lane: `0.03` or `1/32`.
        #[arg(long, value_parser = fraction)]
        probability: f64,
        /// Instructions of the rare path.
        #[arg(long)]
        long: u32,
        /// Instructions of the other path.
        #[arg(long, default_value_t = 0)]
        short: u32,
        /// Warps.
        #[arg(long, default_value_t = 1024)]
        warps: u64,
    },
    /// When sorting items by the arm they take pays: `sort 40@1 40@1 100@2 --items 65536`.
    Sort {
        /// Instructions of an arm, and its weight among the items (left out: 1).
        #[arg(required = true, value_name = "LENGTH[@WEIGHT]", value_parser = path)]
        arms: Vec<(u32, Option<u32>)>,
        /// Items, one a lane.
        #[arg(long)]
        items: u64,
        /// Bits of the key (default: as many as the arms need).
        #[arg(long)]
        key_bits: Option<u32>,
        /// Bits that one pass of the sort handles.
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=32))]
        radix_bits: u32,
        /// Warp instructions of one pass for one warp of items; an estimate, measure your own.
        #[arg(long, default_value_t = 60.0)]
        pass_cost: f64,
        /// Launches that use one sorted order.
        #[arg(long, default_value_t = 1)]
        uses: u64,
    },
}

pub(super) fn run(args: &Args) -> anyhow::Result<u8> {
    let answer = answer(&args.question, args.width)?;
    match args.format {
        Format::Text => print(&lanescope::report::model::text(&answer))?,
        Format::Json => print_json(&lanescope::report::model::json(&answer))?,
    }
    Ok(0)
}

fn answer(question: &Question, width: u32) -> Result<Answer, model::ModelError> {
    match question {
        Question::Paths { paths } => model::paths(paths, width),
        Question::Ways { ways, length } => model::ways(*ways, *length, width),
        Question::Loop { trips, body } => {
            let trips: Vec<(u32, u32)> = trips.iter().map(|t| (t.0, t.1.unwrap_or(1))).collect();
            model::trips(&trips, *body, width)
        }
        Question::Nested { expression } => model::nested(&model::parse(expression, width)?, width),
        Question::Predicate { first, second, lanes, overhead } => {
            model::predicate(*first, *second, lanes.unwrap_or(width / 2), *overhead, width)
        }
        Question::Rare { probability, long, short, warps } => model::rare(*probability, *long, *short, *warps, width),
        Question::Sort { arms, items, key_bits, radix_bits, pass_cost, uses } => {
            let arms: Vec<Arm> =
                arms.iter().map(|a| Arm { length: a.0, weight: f64::from(a.1.unwrap_or(1)) }).collect();
            let needed = u32::BITS - (arms.len().max(2) as u32 - 1).leading_zeros();
            let sort = Sort {
                items: *items,
                key_bits: key_bits.unwrap_or(needed),
                radix_bits: *radix_bits,
                pass_cost: *pass_cost,
                uses: *uses,
            };
            model::sort(&arms, sort, width)
        }
    }
}

fn width(text: &str) -> Result<u32, String> {
    match text {
        "32" => Ok(32),
        "64" => Ok(64),
        _ => Err("a warp has 32 lanes, a wavefront 32 or 64".into()),
    }
}

/// `100@1` or `100`.
fn path(text: &str) -> Result<(u32, Option<u32>), String> {
    let (length, lanes) = text.split_once('@').map_or((text, None), |(a, b)| (a, Some(b)));
    let whole = |t: &str| t.parse().map_err(|_| format!("`{t}` is no whole number below 2^32"));
    Ok((whole(length)?, lanes.map(whole).transpose()?))
}

/// `0.03` or `1/32`.
fn fraction(text: &str) -> Result<f64, String> {
    let (over, under) = text.split_once('/').unwrap_or((text, "1"));
    let number = |t: &str| t.trim().parse::<f64>().map_err(|_| format!("`{t}` is no number"));
    let value = number(over)? / number(under)?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(format!("`{text}` is not between 0 and 1")) }
}
