//! Damaged texts: nothing may panic or go on forever, whatever the tree that is left.

/// Pseudo-random numbers, the same on every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }
}

/// Puts tokens of `text` where they do not belong.
fn damage(text: &str, numbers: &mut Numbers) -> String {
    let ends = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | '%' | '$'));
    let mut tokens: Vec<&str> = text.split_inclusive(ends).collect();
    for _ in 0..=numbers.below(3) {
        let (i, j) = (numbers.below(tokens.len()), numbers.below(tokens.len()));
        match numbers.below(5) {
            0 => tokens[i] = tokens[j],
            1 => drop(tokens.remove(i)),
            2 => tokens.swap(i, j),
            3 => tokens[i] = "4294967295 ",
            _ => tokens.insert(i, tokens[j]),
        }
    }
    tokens.concat()
}

/// Lowers all kernels of `count` damaged copies of `text`, errors of the parser aside.
pub(crate) fn survive(text: &str, count: usize) {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..count {
        let damaged = damage(text, &mut numbers);
        let mut parse = lanescope_ptx::parse(&damaged);
        parse.diagnostics.clear();
        parse.suppressed = 0;
        for function in &parse.module.functions {
            if let Ok(kernel) = lanescope_ptx::lower::load(&parse, function.name, Default::default()) {
                assert_eq!(lanescope_ir::verify::verify(&kernel), Ok(()), "{damaged}");
            }
        }
    }
}
